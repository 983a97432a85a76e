/**
 * Reverse-mode differentiation of expressions: from the adjoints of values to the adjoints of the elements that they
 * read. A shared subexpression has one adjoint, the sum over its uses.
 */
import { type Expr, isZero, type Load, neg, not, type Var } from '../ir/expressions/expr.ts'
import { children, perExpr } from '../ir/expressions/expr-tree.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import { isFloat, isInt } from '../ir/values/dtype.ts'
import { type Derivative, MATH, OPERATOR_DERIVATIVES } from '../ir/values/math.ts'
import { derivativeAt, plus, times, where } from './terms.ts'

/** An element of a tensor, or a scalar parameter. */
export type Leaf = Load | Var

/** A summand of the adjoint of a leaf: `value`, at the iterations at which all `guards` hold. */
export interface Term {
  readonly leaf: Leaf
  readonly guards: readonly Expr[]
  readonly value: Expr
}

export interface AdjointContext {
  readonly isActive: (leaf: Leaf) => boolean
  /** False for an element that need not exist where the value does not read it. */
  readonly isInside: (l: Load) => boolean
  /** A part of a value is a step function, whose derivative is 0 almost everywhere. */
  readonly stopAt: (e: Expr) => void
  /** Throws the error that this part of a value has no derivative. */
  readonly reject: (e: Expr) => never
}

/** The operands on which a value depends continuously: no conditions and no indices. */
const differentiable = (e: Expr): readonly Expr[] =>
  e.kind === 'load' || e.kind === 'var' ? [] : e.kind === 'select' ? [e.then, e.else] : children(e)

/** True if a value depends on a leaf that passes the test, other than through conditions and indices. */
export const dependsOn = (isActive: (leaf: Leaf) => boolean): ((e: Expr) => boolean) =>
  perExpr<boolean>((e, of) =>
    e.kind === 'load' || e.kind === 'var' ? isActive(e) : differentiable(e).some(of),
  )

/** The adjoints of the active leaves of values, each with its own adjoint: a term for each leaf and list of guards. */
export function adjointsOf(
  values: readonly { readonly value: Expr; readonly adjoint: Expr }[],
  { isActive, isInside, stopAt, reject }: AdjointContext,
): readonly Term[] {
  const depends = dependsOn(isActive)
  const mayBeAbsent = dependsOn((leaf) => leaf.kind === 'load' && isActive(leaf) && !isInside(leaf))
  const terms = new Map<string, Term>()
  const sums = new Map<string, Expr>()

  const give = (e: Expr, d: Expr, guards: readonly Expr[]): void => {
    if (isZero(d) || !depends(e)) return
    if (guards.length > 0) {
      visit(e, d, guards)
      return
    }
    const before = sums.get(keyOf(e))
    sums.set(keyOf(e), before ? plus(before, d) : d)
  }
  const visit = (e: Expr, d: Expr, guards: readonly Expr[]): void => {
    if (isInt(e.dtype)) {
      stopAt(e)
      return
    }
    if (!isFloat(e.dtype)) reject(e)
    switch (e.kind) {
      case 'load':
      case 'var': {
        const key = [e, ...guards].map(keyOf).join()
        const before = terms.get(key)?.value
        terms.set(key, { leaf: e, guards, value: before ? plus(before, d) : d })
        return
      }
      case 'unary':
        give(e.x, neg(d), guards)
        return
      case 'cast':
        give(e.x, d, guards)
        return
      case 'select':
        for (const [branch, condition] of [
          [e.then, e.cond],
          [e.else, not(e.cond)],
        ] as const)
          if (mayBeAbsent(branch)) visitIfActive(branch, d, [...guards, condition])
          else give(branch, where(condition, d), guards)
        return
      case 'binary':
      case 'call': {
        const rules: readonly Derivative[] =
          (e.kind === 'call' ? MATH[e.fn].derivatives : OPERATOR_DERIVATIVES[e.op]) ?? []
        const operands = children(e)
        const at = { x: operands[0]!, y: operands[1] ?? operands[0]!, r: e }
        for (const [k, x] of operands.entries()) {
          if (!depends(x)) continue
          const rule = rules[k] ?? reject(e)
          const factor = derivativeAt(rule, at)
          if (rule === 0) stopAt(e)
          if (!isZero(factor)) give(x, times(d, factor), guards)
        }
        return
      }
      default:
        reject(e)
    }
  }
  const visitIfActive = (e: Expr, d: Expr, guards: readonly Expr[]): void => {
    if (depends(e)) visit(e, d, guards)
  }
  // Operands come before the operations on them, each key once, the last operand first.
  const order = new Map<string, Expr>()
  const arrange = (e: Expr): void => {
    if (order.has(keyOf(e)) || !depends(e)) return
    for (const x of differentiable(e).toReversed()) arrange(x)
    order.set(keyOf(e), e)
  }
  for (const { value } of values.toReversed()) arrange(value)
  for (const { value, adjoint } of values) give(value, adjoint, [])
  for (const [key, e] of [...order].reverse()) {
    const d = sums.get(key)
    if (d) visit(e, d, [])
  }
  const place = new Map([...order.keys()].map((key, k) => [key, k]))
  return [...terms.values()].sort((a, b) => place.get(keyOf(b.leaf))! - place.get(keyOf(a.leaf))!)
}
