/**
 * Partial evaluation of expressions in which some reads have their fill value: statements that change nothing there.
 */

import type { Assign, Reduce1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { type StatementContext, someStmt1 } from '../../ir/coordinates/stage1-tree.ts'
import { type Expr, isZero, type Load, not, rewriter } from '../../ir/expressions/expr.ts'
import { rewriteExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { IDENTITIES } from '../../ir/expressions/identities.ts'
import type { Rule } from '../../ir/expressions/patterns.ts'
import { isFloat } from '../../ir/values/dtype.ts'

/** Returns the known value that an access reads; undefined if it is unknown. */
export type KnownAt = (l: Load) => Expr | undefined

/**
 * Returns the value with `known` values in place of accesses: 0 · x is 0 (a skipped zero is structural), x + 0 is x.
 * Floating-point factors x must be finite for that, and are added to `factors`.
 */
export function absorb(e: Expr, known: KnownAt, factors: Expr[]): Expr {
  return rewriteExpr(e, (x) => {
    if (x.kind === 'load') return known(x)
    const folded = x.kind === 'binary' && isFloat(x.dtype) ? foldFill(x) : undefined
    if (x.kind !== 'binary' || !folded) return folded
    const factor = isZero(x.a) ? x.b : x.a
    if (x.op === 'mul' && !alwaysFinite(factor)) factors.push(factor)
    return folded
  })
}

/** Rules for floats whose zeros are fill values, and structural. 0 / x has no rule, because x may be 0. */
export const FILL_RULES: readonly Rule[] = IDENTITIES.filter((rule) => rule.structural)
const foldFill = rewriter(FILL_RULES)

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
