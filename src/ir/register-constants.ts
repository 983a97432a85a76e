/**
 * Expressions of constants alone, as registers hold their values: integers wrapped, floats rounded to the type that they
 * are computed in. Constructors fold the others already; these they leave, since a place must not wrap and a half is
 * rounded later. A target that computes them itself may refuse what overflows.
 */
import { computeType } from './dtype.ts'
import { type Const, constant, type Expr } from './expr.ts'
import { children, perExpr } from './expr-tree.ts'
import { foldCompare } from './fold.ts'
import { arithmetic, convert, mathOf, wrap } from './numeric.ts'
import type { ArithOp } from './ops.ts'
import { rounding } from './rounding.ts'

/** The value of an expression in a register, where it depends on nothing; it is of `computeType`. */
export function constantsIn(): (e: Expr) => Const | undefined {
  const registers = perExpr<number | undefined>((e, of) => {
    if (e.kind === 'const') return e.value
    const xs = children(e).map(of)
    if (xs.length === 0 || xs.some((x) => x === undefined)) return undefined
    return computed(e, xs as number[])
  })
  return (e) => {
    if (e.kind === 'const') return e
    const value = registers(e)
    return value === undefined ? undefined : constant(value, computeType(e.dtype), e.span)
  }
}

function computed(e: Expr, [a = 0, b = 0, c = 0]: readonly number[]): number | undefined {
  const type = computeType(e.dtype)
  switch (e.kind) {
    case 'unary':
      return e.op === 'not' ? Number(a === 0) : wrap(type)(-a)
    case 'binary': {
      const holds = foldCompare(e.op, a, b)
      if (holds !== undefined) return Number(holds)
      // Nobody arrives where C's own division would be by 0.
      if ((e.op === 'quo' || e.op === 'rem') && b === 0) return undefined
      return rounding(type)(arithmetic(e.op as ArithOp, type)(a, b))
    }
    case 'call':
      return rounding(type)(wrap(type)(mathOf(e.fn)(a, b)))
    case 'select':
      return a !== 0 ? b : c
    case 'cast':
      return convert(e.x.dtype, e.dtype)(a)
    default:
      return undefined
  }
}
