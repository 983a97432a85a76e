/**
 * Patterns of expressions, for rewrite rules. A letter matches any expression, the same at each occurrence; `c` and `d`
 * match constants. Matching takes one walk over the pattern's operators.
 */

import type { BinaryOp } from '../values/math.ts'
import { constant } from './expr.ts'
import type { Const, Expr } from './expr-nodes.ts'
import { sameExpr } from './structural-equality.ts'

export type Pattern = string | number | readonly [op: BinaryOp, a: Pattern, b: Pattern]

export interface Bindings {
  readonly [letter: string]: Expr
  readonly c: Const
  readonly d: Const
}

type Letters = Record<string, Expr>
type Matcher = (e: Expr, bindings: Letters) => boolean

function compilePattern(p: Pattern, usedLetters: Set<string>): Matcher {
  if (typeof p === 'number') return (e) => e.kind === 'const' && e.value === p
  if (typeof p === 'string') {
    if (usedLetters.has(p)) return (e, bindings) => sameExpr(e, bindings[p]!)
    usedLetters.add(p)
    const isConstantLetter = p === 'c' || p === 'd'
    return (e, bindings) => {
      if (isConstantLetter && e.kind !== 'const') return false
      bindings[p] = e
      return true
    }
  }
  const [op, a, b] = [p[0], compilePattern(p[1], usedLetters), compilePattern(p[2], usedLetters)]
  return (e, bindings) => e.kind === 'binary' && e.op === op && a(e.a, bindings) && b(e.b, bindings)
}

/**
 * A matcher for as many expressions as there are patterns; the patterns share their letters. It returns `undefined` if
 * one does not match.
 */
export function matcher(...patterns: readonly Pattern[]): (...es: readonly Expr[]) => Bindings | undefined {
  const usedLetters = new Set<string>()
  const matchers = patterns.map((p) => compilePattern(p, usedLetters))
  return (...es) => {
    const bindings: Letters = {}
    return matchers.every((m, k) => m(es[k]!, bindings)) ? (bindings as unknown as Bindings) : undefined
  }
}

/** Returns a function to the rules of a table that match an expression, each with the letters' values. */
export function rulesOf<R extends { readonly match: Pattern }>(table: readonly R[]) {
  const compiled = table.map((rule) => ({ rule, match: matcher(rule.match) }))
  return (e: Expr): readonly { readonly rule: R; readonly found: Bindings }[] =>
    compiled.flatMap(({ rule, match }) => {
      const found = match(e)
      return found ? [{ rule, found }] : []
    })
}

/** A rewrite rule as data: `match` is equal to the expression `to`, or a letter, where `when` holds. */
export interface Rule {
  readonly name: string
  readonly match: Pattern
  readonly when?: (b: Bindings, e: Expr) => boolean
  readonly to: string | number
  /** A letter whose value must be finite if the type is a float. */
  readonly finite?: string
}

/** Returns a function that applies the first rule that matches; undefined if no rule matches. */
export function firstRule(rules: readonly Rule[]): (e: Expr) => Rewritten | undefined {
  const matching = rulesOf(rules)
  return (e) => {
    for (const { rule, found } of matching(e)) {
      if (rule.when?.(found, e) === false) continue
      const value = typeof rule.to === 'number' ? constant(rule.to, e.dtype) : found[rule.to]!
      return { value, finite: rule.finite === undefined ? undefined : found[rule.finite] }
    }
    return undefined
  }
}

export interface Rewritten {
  readonly value: Expr
  readonly finite: Expr | undefined
}
