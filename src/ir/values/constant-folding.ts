/** Constant folding of operators and functions. */
import { computeType, type ExprType, INT_RANGE, isFloat, isInt, scalarType } from './dtype.ts'
import { rounding } from './half.ts'
import { type ArithOp, type BinaryOp, isTruth, type MathFn } from './math.ts'
import { arithmetic, mathOf, TRUTH, WHOLE } from './numeric.ts'

/** `a op b` in exact integers; `undefined` for a divisor of 0 and for operators that return a truth value. */
export function foldInt(op: BinaryOp, a: number, b: number): number | undefined {
  if (isTruth(op) || (b === 0 && isDivision(op))) return undefined
  return WHOLE[op](a, b)
}

const isDivision = (op: ArithOp): boolean => op === 'div' || op === 'mod' || op === 'quo' || op === 'rem'

/** `a op b` of floats, rounded to the type of the computation; `undefined` for a divisor of 0, as for integers. */
export function foldFloat(op: BinaryOp, a: number, b: number, dtype: ExprType): number | undefined {
  if ((op === 'div' || op === 'mod') && b === 0) return undefined
  return rounding(computeType(dtype))(arithmetic(op as ArithOp, dtype)(a, b))
}

/** `fn` of constants, rounded to the type of the computation. */
export const foldCall = (fn: MathFn, [x = 0, y = 0]: readonly number[], dtype: ExprType): number =>
  rounding(computeType(dtype))(mathOf(fn)(x, y))

/**
 * True if the result is representable in the type. Other results are computed in registers: those that wrap,
 * and those with more digits than a half type has.
 */
export const isValue = (v: number, dtype: ExprType): boolean => {
  if (isFloat(dtype)) return Object.is(rounding(dtype)(v), v)
  const [lo, hi] = isInt(dtype) ? INT_RANGE[scalarType(dtype) as 'i32'] : []
  return lo !== undefined && v >= lo && v <= hi!
}

export const foldCompare = (op: BinaryOp, a: number, b: number): boolean | undefined =>
  isTruth(op) ? TRUTH[op](a, b) !== 0 : undefined
