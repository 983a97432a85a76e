/** What expressions come to where some of what they read is at its fill: which statements change nothing there. */
import { isFloat } from '../ir/dtype.ts'
import { constant, type Expr, isZero, type Load, not } from '../ir/expr.ts'
import { rewriteExpr, substitute } from '../ir/expr-tree.ts'
import type { Assign, Reduce1, Stmt1 } from '../ir/stage1.ts'
import { type Around1, someStmt1 } from '../ir/stage1-tree.ts'
import { keyOf } from '../ir/structural-equality.ts'

/** What an access reads there, if that is known. */
export type KnownAt = (l: Load) => Expr | undefined

/**
 * The value with what is `known` in place of accesses: 0 · x is 0 (a skipped zero is structural), x + 0 is x. Floating-point
 * `factors` x must be finite for that; 0 / x is no 0 for one that may be 0.
 */
export function absorb(e: Expr, known: KnownAt, factors: Expr[]): Expr {
  return rewriteExpr(e, (x) => {
    if (x.kind === 'load') return known(x)
    if (x.kind === 'select') return keyOf(x.then) === keyOf(x.else) ? x.then : undefined
    if (x.kind !== 'binary') return undefined
    if (x.op === 'mul' && (isZero(x.a) || isZero(x.b))) {
      const other = isZero(x.a) ? x.b : x.a
      if (isFloat(x.dtype) && !alwaysFinite(other)) factors.push(other)
      return constant(0, x.dtype)
    }
    if (x.op === 'div' && isZero(x.a) && (!isFloat(x.dtype) || (alwaysFinite(x.b) && !isZero(x.b))))
      return constant(0, x.dtype)
    if (x.op === 'add' && isZero(x.a)) return x.b
    if ((x.op === 'add' || x.op === 'sub') && isZero(x.b)) return x.a
    return undefined
  })
}

/** Whether a factor is finite whatever the data are. */
const alwaysFinite = (e: Expr): boolean =>
  e.kind === 'const'
    ? Number.isFinite(e.value)
    : !isFloat(e.dtype) || (e.kind === 'cast' && e.dtype !== 'f16' && alwaysFinite(e.x))

/** A statement that writes, over what no `let` names. */
export interface Written {
  readonly stmt: Assign | Reduce1
  readonly values: readonly Expr[]
  readonly conditions: readonly Expr[]
}

export const writtenIn = (stmt: Assign | Reduce1, around: Around1): Written => ({
  stmt,
  values: stmt.values.map((v) => substitute(v, around.lets)),
  conditions: conditionsOf(stmt, around),
})

/** What a statement gives to a target. */
export interface Given {
  readonly value: Expr
  /** What must be finite for that. */
  readonly factors: readonly Expr[]
  /** Whether it is combined, and changes nothing. */
  readonly isIdentity: boolean
}

/** What a statement gives to each of its targets where something is `known`: nothing where it is passed over. */
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

/** Whether a statement is passed over there, or combines nothing but the identity. */
export const comesToNothing = (w: Written, known: KnownAt): boolean =>
  givenBy(w, known).every((g) => g.isIdentity)

export const isIdentity = (value: Expr, identity: Expr): boolean =>
  value.kind === 'const' && identity.kind === 'const' && value.value === identity.value

/** The conditions under which a statement runs, over what no `let` names. */
function conditionsOf(s: Stmt1, { iterations, ifs, lets }: Around1): readonly Expr[] {
  return [
    ...iterations.flatMap((it) => it.where),
    ...ifs.map((f) => (someStmt1(f.then, (x) => x === s) ? f.cond : not(f.cond))),
  ].map((c) => substitute(c, lets))
}

/** Whether a condition does not hold there, whatever else the data are. */
function isNever(condition: Expr, known: KnownAt): boolean {
  const factors: Expr[] = []
  const left = absorb(condition, known, factors)
  return left.kind === 'const' && left.value === 0 && factors.length === 0
}
