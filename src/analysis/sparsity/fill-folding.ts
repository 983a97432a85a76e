/**
 * Partial evaluation of expressions in which some reads have their fill value: statements that change nothing there.
 */

import type { Assign, Reduce1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { type StatementContext, someStmt1 } from '../../ir/coordinates/stage1-tree.ts'
import { type Expr, isZero, type Load, not } from '../../ir/expressions/expr.ts'
import { rewriteExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { firstRule, type Rule } from '../../ir/expressions/patterns.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { isFloat } from '../../ir/values/dtype.ts'

/** Returns the known value that an access reads; undefined if it is unknown. */
export type KnownAt = (l: Load) => Expr | undefined

/**
 * Returns the value with `known` values in place of accesses: 0 · x is 0 (a skipped zero is structural), x + 0 is x.
 * Floating-point factors x must be finite for that, and are added to `factors`. 0 / x is not simplified if x may be 0.
 */
export function absorb(e: Expr, known: KnownAt, factors: Expr[]): Expr {
  return rewriteExpr(e, (x) => {
    if (x.kind === 'load') return known(x)
    if (x.kind === 'select') return keyOf(x.then) === keyOf(x.else) ? x.then : undefined
    const folded = foldFill(x)
    if (folded?.finite && isFloat(x.dtype) && !alwaysFinite(folded.finite)) factors.push(folded.finite)
    return folded?.value
  })
}

/** Rules about 0. A skipped zero is structural, so its sign has no effect. */
export const FILL_RULES: readonly Rule[] = [
  { name: 'zero times', match: ['mul', 0, 'x'], to: 0, finite: 'x' },
  { name: 'times zero', match: ['mul', 'x', 0], to: 0, finite: 'x' },
  {
    name: 'zero over',
    match: ['div', 0, 'x'],
    when: ({ x }, e) => !isFloat(e.dtype) || (alwaysFinite(x!) && !isZero(x!)),
    to: 0,
  },
  { name: 'zero plus', match: ['add', 0, 'x'], to: 'x' },
  { name: 'plus zero', match: ['add', 'x', 0], to: 'x' },
  { name: 'minus zero', match: ['sub', 'x', 0], to: 'x' },
]
const foldFill = firstRule(FILL_RULES)

/** Returns whether a factor is finite for any data. */
const alwaysFinite = (e: Expr): boolean =>
  e.kind === 'const'
    ? Number.isFinite(e.value)
    : !isFloat(e.dtype) || (e.kind === 'cast' && e.dtype !== 'f16' && alwaysFinite(e.x))

/** A writing statement with the values of `let`s substituted. */
export interface Written {
  readonly stmt: Assign | Reduce1
  readonly values: readonly Expr[]
  readonly conditions: readonly Expr[]
}

export const writtenIn = (stmt: Assign | Reduce1, around: StatementContext): Written => ({
  stmt,
  values: stmt.values.map((v) => substitute(v, around.lets)),
  conditions: conditionsOf(stmt, around),
})

/** The value that a statement gives to a target. */
export interface Given {
  readonly value: Expr
  /** Factors that must be finite for this value. */
  readonly factors: readonly Expr[]
  /** True if the value is the identity of the reduction that combines it, so that the target does not change. */
  readonly isIdentity: boolean
}

/**
 * Returns the value that a statement gives to each of its targets under the `known` reads; an empty list if it does not
 * run.
 */
export function givenBy({ stmt, values, conditions }: Written, known: KnownAt): readonly Given[] {
  if (conditions.some((c) => isNever(c, known))) return []
  return values.map((v, k) => {
    const factors: Expr[] = []
    const value = absorb(v, known, factors)
    return {
      value,
      factors,
      isIdentity: stmt.kind === 'reduce' && isIdentity(value, stmt.reducer.identity[k]!),
    }
  })
}

/** Returns whether a statement does not run under the `known` reads, or combines the identity only. */
export const comesToNothing = (w: Written, known: KnownAt): boolean =>
  givenBy(w, known).every((g) => g.isIdentity)

export const isIdentity = (value: Expr, identity: Expr): boolean =>
  value.kind === 'const' && identity.kind === 'const' && value.value === identity.value

/** Returns the conditions under which a statement runs, with the values of `let`s substituted. */
function conditionsOf(s: Stmt1, { iterations, ifs, lets }: StatementContext): readonly Expr[] {
  return [
    ...iterations.flatMap((it) => it.where),
    ...ifs.map((f) => (someStmt1(f.then, (x) => x === s) ? f.cond : not(f.cond))),
  ].map((c) => substitute(c, lets))
}

/** Returns whether a condition is false under the `known` reads, for any other data. */
function isNever(condition: Expr, known: KnownAt): boolean {
  const factors: Expr[] = []
  const left = absorb(condition, known, factors)
  return left.kind === 'const' && left.value === 0 && factors.length === 0
}
