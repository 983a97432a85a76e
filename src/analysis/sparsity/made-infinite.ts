/** Whether arithmetic may come to no finite number where it did, because one operand has another finite value. */
import { isFloat } from '../../ir/dtype.ts'
import { type Expr, isZero } from '../../ir/expr.ts'
import { children, someExpr } from '../../ir/expr-tree.ts'
import type { MathFn } from '../../ir/math.ts'
import { absorb, type KnownAt } from '../fill-folding.ts'

/** Finite of finite numbers, and none is large where the operand is not. */
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
 * With `now` in place of some accesses, which were finite: sums and products of finite numbers stay so, as everywhere where zeros
 * are skipped; what is divided by it, or a function of it, need not, nor is 0 times what `mayBeInfinite` is 0.
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
    // What was divided by 0 was infinite; 0 / 0 is no number.
    const isOver = x.kind === 'binary' && !someExpr(x.b, isOf) && !isZero(absorb(x.a, now, []))
    if (isRisky(x) && !isOver) return true
    return children(x).some(go)
  }
  return go(e)
}

const isRisky = (x: Expr): boolean =>
  isFloat(x.dtype) &&
  (x.kind === 'call' ? !FINITE.has(x.fn) : x.kind === 'binary' && (x.op === 'div' || x.op === 'mod'))
