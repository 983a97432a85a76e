/** What operators and functions give for constants. */
import { computeType, type Dtype, INT_RANGE, isFloat, isInt } from './dtype.ts'
import type { MathFn } from './math.ts'
import { arithmetic, mathOf } from './numeric.ts'
import type { ArithOp, BinaryOp } from './ops.ts'
import { rounding } from './rounding.ts'

/** `a op b` in exact integers; nothing where the divisor is 0 or `op` gives a truth value. */
export function foldInt(op: BinaryOp, a: number, b: number): number | undefined {
  switch (op) {
    case 'add':
      return a + b
    case 'sub':
      return a - b
    case 'mul':
      return a * b
    case 'div':
      return b === 0 ? undefined : Math.floor(a / b)
    case 'mod':
      return b === 0 ? undefined : a - b * Math.floor(a / b)
    case 'quo':
      return b === 0 ? undefined : Math.trunc(a / b)
    case 'rem':
      return b === 0 ? undefined : a % b
    case 'min':
      return Math.min(a, b)
    case 'max':
      return Math.max(a, b)
    default:
      return undefined
  }
}

/** `a op b` of floats, rounded to the type that they are computed in; nothing where the divisor is 0, as of integers. */
export function foldFloat(op: BinaryOp, a: number, b: number, dtype: Dtype): number | undefined {
  if ((op === 'div' || op === 'mod') && b === 0) return undefined
  return rounding(computeType(dtype))(arithmetic(op as ArithOp, dtype)(a, b))
}

/** `fn` of constants, rounded to the type that it is computed in. */
export const foldCall = (fn: MathFn, [x = 0, y = 0]: readonly number[], dtype: Dtype): number =>
  rounding(computeType(dtype))(mathOf(fn)(x, y))

/** Whether a result is a value of the type: what wraps, or is wider than a half, is left to registers. */
export const isValue = (v: number, dtype: Dtype): boolean => {
  if (isFloat(dtype)) return Object.is(rounding(dtype)(v), v)
  return isInt(dtype) && v >= INT_RANGE[dtype as 'i32'][0] && v <= INT_RANGE[dtype as 'i32'][1]
}

export function foldCompare(op: BinaryOp, a: number, b: number): boolean | undefined {
  switch (op) {
    case 'lt':
      return a < b
    case 'le':
      return a <= b
    case 'gt':
      return a > b
    case 'ge':
      return a >= b
    case 'eq':
      return a === b
    case 'ne':
      return a !== b
    case 'and':
      return a !== 0 && b !== 0
    case 'or':
      return a !== 0 || b !== 0
    default:
      return undefined
  }
}
