/**
 * Arithmetic of the reference: floats in float64, rounded by casts; integers exact, wrapping to their type. Division
 * and modulo of integers round down and give 0 for a divisor of 0; `%` of floats also rounds the quotient down. Casts
 * from float to integer truncate and saturate; NaN gives 0.
 */
import { InternalError } from '../../ast/diagnostics/diagnostic.ts'
import { type Binary, SIZE_OPERATORS } from '../expressions/size-expressions.ts'
import { computeType, type ExprType, INT_RANGE, isFloat, isInt, scalarType } from './dtype.ts'
import { rounding } from './half.ts'
import type { ArithOp, BinaryOp, MathFn } from './math.ts'
import { isTruth, MATH } from './math.ts'

export const isPowerOfTwo = (n: number): boolean => n >= 1 && Number.isInteger(Math.log2(n))

/** A function that reduces an exact integer to the type's range, modulo 2^bits; floats are unchanged. */
export function wrap(dtype: ExprType): (x: number) => number {
  switch (scalarType(dtype)) {
    case 'i32':
      return (x) => x | 0
    case 'u32':
      return (x) => x >>> 0
    case 'i8':
      return (x) => (x << 24) >> 24
    case 'u8':
      return (x) => x & 255
    case 'bool':
      return (x) => (x !== 0 ? 1 : 0)
    default:
      return (x) => x
  }
}

export function convert(from: ExprType, to: ExprType): (x: number) => number {
  if (isFloat(to)) return rounding(to)
  if (to === 'bool' || !isFloat(from)) return wrap(to)
  const [lo, hi] = INT_RANGE[scalarType(to) as keyof typeof INT_RANGE]
  return (x) => (Number.isNaN(x) ? 0 : Math.min(hi, Math.max(lo, Math.trunc(x))) + 0)
}

const FLOAT: Readonly<Record<ArithOp, Binary>> = {
  ...SIZE_OPERATORS,
  div: (a, b) => a / b,
  mod: (a, b) => a - b * Math.floor(a / b),
  quo: (a, b) => Math.trunc(a / b),
  rem: (a, b) => a % b,
}

/** On integers of at most 32 bits every result below is exact in float64, except `mul`. */
const INT: Readonly<Record<ArithOp, Binary>> = {
  ...SIZE_OPERATORS,
  mul: Math.imul,
  quo: (a, b) => Math.trunc(a / divisor(b)),
  rem: (a, b) => a % divisor(b),
}

/** The divisor of a target's division, which C leaves undefined for 0: compilers assume that it is not 0. */
function divisor(b: number): number {
  if (b === 0) throw new InternalError('a division by 0 is computed outside of the condition that skips it')
  return b
}

export function arithmetic(op: ArithOp, dtype: ExprType): Binary {
  if (isFloat(dtype)) return FLOAT[op]
  const exact = INT[op]
  const toType = wrap(dtype)
  return op === 'min' || op === 'max' ? exact : (a, b) => toType(exact(a, b))
}

/** The host implementation of a function; one-argument functions ignore the second argument. */
export const mathOf = (fn: MathFn): Binary => MATH[fn].evaluate

// Constant folding of operators and functions.

/** `a op b` in exact integers; `undefined` for a divisor of 0 and for operators that return a truth value. */
export function foldInt(op: BinaryOp, a: number, b: number): number | undefined {
  if (isTruth(op) || (b === 0 && isDivisionOp(op))) return undefined
  return SIZE_OPERATORS[op](a, b)
}

const DIVISIONS: ReadonlySet<string> = new Set(['div', 'mod', 'quo', 'rem'])
export const isDivisionOp = (op: BinaryOp): boolean => DIVISIONS.has(op)

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
  isTruth(op) ? SIZE_OPERATORS[op](a, b) !== 0 : undefined
