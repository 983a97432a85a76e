/** Detection of results that become infinite or NaN because one operand has another finite value. */

import { type Expr, isZero } from '../../ir/expressions/expr.ts'
import { children, someExpr } from '../../ir/expressions/expr-tree.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import type { MathFn } from '../../ir/values/math.ts'
import { absorb, type KnownAt } from './fill-folding.ts'

/** Functions whose results are finite for finite operands, and not large for operands that are not. */
const FINITE: ReadonlySet<MathFn> = new Set([
  'abs',
  'sin',
  'cos',
  'tanh',
  'sigmoid',
  'floor',
  'ceil',
  'round',
  'erf',
  'sign',
])

/**
 * Returns whether the value may become infinite or NaN with `now` in place of some accesses, which were finite. Sums
 * and products of finite numbers stay finite, as everywhere where zeros are skipped. A quotient by such an access, or a
 * function of it, may become infinite, and so may 0 times a factor that `mayBeInfinite`.
 */
export function madeInfinite(e: Expr, now: KnownAt, mayBeInfinite: (factor: Expr) => boolean): boolean {
  const isOf = (x: Expr): boolean => x.kind === 'load' && now(x) !== undefined
  const go = (x: Expr): boolean => {
    if (!someExpr(x, isOf)) return false
    const factors: Expr[] = []
    const there = absorb(x, now, factors)
    if (factors.some(mayBeInfinite)) return true
    if (there.kind === 'const') return !Number.isFinite(there.value)
    if (isOf(x)) return true
    if (x.kind === 'select' && someExpr(x.cond, isOf))
      return [x.then, x.else].some((y) => someExpr(y, isRisky) || go(y))
    // If only the dividend changes, a quotient is infinite for the divisor 0, as before; but 0 / 0 is NaN.
    const isOver = x.kind === 'binary' && !someExpr(x.b, isOf) && !isZero(absorb(x.a, now, []))
    if (isRisky(x) && !isOver) return true
    return children(x).some(go)
  }
  return go(e)
}

const isRisky = (x: Expr): boolean =>
  isFloat(x.dtype) &&
  (x.kind === 'call' ? !FINITE.has(x.fn) : x.kind === 'binary' && (x.op === 'div' || x.op === 'mod'))
