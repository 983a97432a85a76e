/**
 * Patterns of expressions, of which rules are made. A letter stands for any expression, the same one wherever it occurs;
 * `c` and `d` are constants. What a pattern binds is found by one walk over its operators.
 */
import type { Const, Expr } from './expr-nodes.ts'
import type { BinaryOp } from './ops.ts'
import { sameExpr } from './structural-equality.ts'

export type Pattern = string | number | readonly [op: BinaryOp, a: Pattern, b: Pattern]

/** What the letters of a pattern stand for. */
export interface Found {
  readonly [letter: string]: Expr
  readonly c: Const
  readonly d: Const
}

type Letters = Record<string, Expr>
type Matcher = (e: Expr, found: Letters) => boolean

function matcherOf(p: Pattern, bound: Set<string>): Matcher {
  if (typeof p === 'number') return (e) => e.kind === 'const' && e.value === p
  if (typeof p === 'string') {
    if (bound.has(p)) return (e, found) => sameExpr(e, found[p]!)
    bound.add(p)
    const constant = p === 'c' || p === 'd'
    return (e, found) => {
      if (constant && e.kind !== 'const') return false
      found[p] = e
      return true
    }
  }
  const [op, a, b] = [p[0], matcherOf(p[1], bound), matcherOf(p[2], bound)]
  return (e, found) => e.kind === 'binary' && e.op === op && a(e.a, found) && b(e.b, found)
}

/** A function that matches as many expressions as patterns, which have their letters in common. */
export function matcher(...patterns: readonly Pattern[]): (...es: readonly Expr[]) => Found | undefined {
  const bound = new Set<string>()
  const matchers = patterns.map((p) => matcherOf(p, bound))
  return (...es) => {
    const found: Letters = {}
    return matchers.every((m, k) => m(es[k]!, found)) ? (found as unknown as Found) : undefined
  }
}
