/**
 * Patterns of expressions, for rewrite rules. A letter matches any expression, the same at each occurrence; `c` and `d`
 * match constants. Matching takes one walk over the pattern's operators.
 */
import type { Const, Expr } from './expr-nodes.ts'
import type { BinaryOp } from './ops.ts'
import { sameExpr } from './structural-equality.ts'

export type Pattern = string | number | readonly [op: BinaryOp, a: Pattern, b: Pattern]

/** The expressions bound to the letters of a pattern. */
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

/**
 * A matcher for as many expressions as there are patterns; the patterns share their letters. It returns `undefined` if
 * one does not match.
 */
export function matcher(...patterns: readonly Pattern[]): (...es: readonly Expr[]) => Found | undefined {
  const bound = new Set<string>()
  const matchers = patterns.map((p) => matcherOf(p, bound))
  return (...es) => {
    const found: Letters = {}
    return matchers.every((m, k) => m(es[k]!, found)) ? (found as unknown as Found) : undefined
  }
}
