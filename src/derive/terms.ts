/** Partial derivatives as expressions, and products and sums of them without zeros and ones. */
import { absorb } from '../analysis/sparsity/fill-folding.ts'
import {
  binary,
  call,
  cast,
  constant,
  type Expr,
  isOne,
  isZero,
  neg,
  not,
  select,
} from '../ir/expressions/expr.ts'
import { rewriteExpr, someExpr } from '../ir/expressions/expr-tree.ts'
import { sameExpr } from '../ir/expressions/structural-equality.ts'
import { type ExprType, join } from '../ir/values/dtype.ts'
import { type BinaryOp, type Derivative, MATH, type MathFn } from '../ir/values/math.ts'

/** The operands and the result of an operation. */
interface Operands {
  readonly x: Expr
  readonly y: Expr
  readonly r: Expr
}

/** The value of a partial derivative at an operation. */
export function derivativeAt(d: Derivative, at: Operands): Expr {
  if (typeof d === 'number') return constant(d, at.r.dtype)
  if (typeof d === 'string') return at[d]
  const [op, ...operands] = d
  const args = operands.map((x) => derivativeAt(x, at))
  if (op === 'neg') return neg(args[0]!)
  if (op === 'where') return where(args[0]!, args[1]!)
  if (op === 'mul' && args.some(isZero)) return constant(0, at.r.dtype)
  return op in MATH ? call(op as MathFn, args) : combine(op as BinaryOp, args[0]!, args[1]!)
}

/** `a op b` in the common type. */
function combine(op: BinaryOp, a: Expr, b: Expr): Expr {
  const dtype: ExprType = join(a.dtype, b.dtype)
  return binary(op, cast(a, dtype), cast(b, dtype))
}

const zeroOf = (e: Expr): Expr => constant(0, e.dtype)

/** `d` where the condition holds, otherwise 0. */
export const where = (condition: Expr, d: Expr): Expr => select(condition, d, zeroOf(d))

/**
 * The condition outside of which an adjoint is 0; undefined if it is not known. There, the partial derivative may be infinite or NaN, and
 * the product with it is 0 all the same: the value is not used.
 */
function supportOf(d: Expr): Expr | undefined {
  if (d.kind === 'select') return isZero(d.else) ? d.cond : undefined
  if (d.kind === 'unary') return d.op === 'neg' ? supportOf(d.x) : undefined
  if (d.kind !== 'binary') return undefined
  const [a, b] = [supportOf(d.a), supportOf(d.b)]
  if (d.op === 'mul' || d.op === 'div') return a ?? (d.op === 'mul' ? b : undefined)
  const isSum = d.op === 'add' || d.op === 'sub'
  if (!isSum || !a || !b) return undefined
  return sameExpr(a, b) ? a : binary('or', a, b)
}

const mayBeInfinite = (e: Expr): boolean =>
  someExpr(e, (x) => x.kind === 'call' || (x.kind === 'binary' && x.op === 'div'))

/** The product of an adjoint and a partial derivative. */
export function times(d: Expr, factor: Expr): Expr {
  if (factor.dtype === 'bool') return where(factor, d)
  if (isOne(factor) || isZero(d)) return d
  if (factor.kind === 'const' && factor.value === -1) return neg(d)
  if (factor.kind === 'unary' && factor.op === 'neg') return neg(times(d, factor.x))
  if (d.kind === 'select' && isZero(d.else)) return where(d.cond, times(d.then, factor))
  if (d.kind === 'unary' && d.op === 'neg') return neg(times(d.x, factor))
  const support = mayBeInfinite(factor) ? supportOf(d) : undefined
  return support ? where(support, product(d, factor)) : product(d, factor)
}

function product(d: Expr, factor: Expr): Expr {
  if (factor.kind === 'binary' && (factor.op === 'div' || factor.op === 'mul'))
    return factor.op === 'div'
      ? combine('div', times(d, factor.a), factor.b)
      : times(times(d, factor.a), factor.b)
  return isOne(d) ? factor : combine('mul', d, factor)
}

/** A value without products with 0 and 1, and without sums with 0. */
export const withoutConstants = (e: Expr): Expr =>
  rewriteExpr(
    absorb(e, () => undefined, []),
    (x) => {
      if (x.kind !== 'binary' || x.op !== 'mul') return undefined
      return isOne(x.a) ? x.b : isOne(x.b) ? x.a : undefined
    },
  )

const isOpposite = (c: Expr, d: Expr): boolean => sameExpr(not(c), d) || sameExpr(c, not(d))

/** The sum of two adjoints. */
export function plus(a: Expr, b: Expr): Expr {
  if (isZero(a)) return b
  if (isZero(b)) return a
  if (a.kind === 'select' && b.kind === 'select' && isZero(a.else) && isZero(b.else)) {
    if (sameExpr(a.cond, b.cond)) return where(a.cond, plus(a.then, b.then))
    if (isOpposite(a.cond, b.cond)) return select(a.cond, a.then, cast(b.then, a.dtype))
  }
  if (b.kind === 'unary' && b.op === 'neg') return combine('sub', a, b.x)
  return a.kind === 'unary' && a.op === 'neg' ? combine('sub', b, a.x) : combine('add', a, b)
}
