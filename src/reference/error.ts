/**
 * Error bounds of computed values. Each float64 value carries a bound on its difference from the result of any order of
 * operations, each rounded in the type of its computation (Higham, Accuracy and Stability of Numerical Algorithms,
 * 2002, sections 3.1 and 4.2: a sum of n terms errs by at most (n - 1) u Σ|t| in any order). 0: every correct program
 * computes this exact value. Infinity: undecided, any value is possible.
 */
import type { Dtype } from '../ir/values/dtype.ts'
import { rounding } from '../ir/values/half.ts'

export const UNDECIDED = Number.POSITIVE_INFINITY

/**
 * The unit roundoff u: the distance of neighbouring numbers at 1. This is twice that of rounding to nearest, because
 * tensor cores round sums toward zero, and in f64 the reference rounds too. 0 for exact arithmetic.
 */
export const UNIT: Readonly<Record<Dtype, number>> = {
  f64: 2 ** -52,
  f32: 2 ** -23,
  f16: 2 ** -10,
  bf16: 2 ** -7,
  i32: 0,
  u32: 0,
  i8: 0,
  u8: 0,
  bool: 0,
}

/** Least normal numbers: devices may flush smaller ones to 0. */
const LEAST_NORMAL: Readonly<Record<Dtype, number>> = {
  ...UNIT,
  f64: 0,
  f32: 2 ** -126,
  f16: 2 ** -14,
  bf16: 2 ** -126,
}

const LARGEST: Partial<Record<Dtype, number>> = {
  f32: (2 - 2 ** -23) * 2 ** 127,
  f16: 65504,
  bf16: 255 * 2 ** 120,
}

/** The error bound of the last closure's result. */
export const last = { error: 0 }

/** The distance of equal infinities is 0. */
const distance = (a: number, b: number): number => (Object.is(a, b) || a === b ? 0 : Math.abs(a - b))

/** The error of y = f(x) for a monotonically increasing f and an argument within `error` of x. */
export function monotoneError(f: (x: number) => number, x: number, error: number, y: number): number {
  if (error === 0 || error === Number.POSITIVE_INFINITY) return error
  const e = Math.max(distance(f(x + error), y), distance(f(x - error), y))
  return Number.isNaN(e) ? Number.POSITIVE_INFINITY : e
}

/**
 * `monotoneError` for functions to integers. An error below 1 that crosses a step is smaller than the step, so that no bound
 * in between is a correct result: undecided.
 */
export function stepError(f: (x: number) => number, x: number, error: number, y: number): number {
  const e = monotoneError(f, x, error, y)
  return e > 0 && error < 1 ? UNDECIDED : e
}

/** `monotoneError` for a function that increases with both operands. */
export const binaryMonotoneError = (
  f: (x: number, y: number) => number,
  x: number,
  ex: number,
  y: number,
  ey: number,
  v: number,
): number => Math.max(distance(f(x + ex, y + ey), v), distance(f(x - ex, y - ey), v))

/**
 * The error of a result v in type t whose operands contribute `error`: one more rounding, of `units` roundoffs. An
 * exact result of exact operands that is representable is neither rounded nor, unless subnormal, flushed to 0.
 */
export function roundedError(v: number, error: number, t: Dtype, units = 1): number {
  if (!Number.isFinite(v)) return Number.isFinite(error) ? 0 : Number.POSITIVE_INFINITY
  const isExact = units === 1 && Math.abs(v) >= LEAST_NORMAL[t] && rounding(t)(v) === v
  if (error === 0 && (v === 0 || isExact)) return 0
  const e = error + units * UNIT[t] * Math.abs(v) + LEAST_NORMAL[t]
  const largest = LARGEST[t]
  return !(largest === undefined || Math.abs(v) + e <= largest) || Number.isNaN(e)
    ? Number.POSITIVE_INFINITY
    : e
}

/** 2^27 + 1, which splits a double into two halves of its digits. */
const SPLIT = 134217729

/**
 * True if v is the exact product of x and y, not just the nearest double (Dekker, Numerische Mathematik 18, 1971).
 * Otherwise compilers that contract `x * y + z` compute another sum.
 */
export function isExactProduct(x: number, y: number, v: number): boolean {
  const [hx, hy] = [SPLIT * x - (SPLIT * x - x), SPLIT * y - (SPLIT * y - y)]
  const [lx, ly] = [x - hx, y - hy]
  return hx * hy - v + hx * ly + lx * hy + lx * ly === 0
}

/** Error bounds of the elements of a buffer that a kernel writes. */
export interface Bounds {
  readonly error: Float64Array
  /** For buffers with sums: Σ|t| of each element's terms, their number, and whether any term is not an integer. */
  readonly sums: {
    readonly magnitude: Float64Array
    readonly terms: Float64Array
    readonly fractional: Uint8Array
  } | null
}

/** The error of an element of type `t` that was combined in type `combined`, before it is rounded to `t`. */
export function errorAt(b: Bounds, a: number, t: Dtype, combined: Dtype): number {
  const error = b.error[a]!
  const terms = b.sums ? b.sums.terms[a]! : 0
  if (!b.sums || terms === 0) return error
  const magnitude = b.sums.magnitude[a]!
  const exact = error === 0 && b.sums.fractional[a] === 0 && magnitude * UNIT[t] <= 2
  if (exact || Number.isNaN(magnitude) || magnitude === Number.POSITIVE_INFINITY) return error
  // Sums of several iterations are added in the stored type.
  const storedUnit = t === combined ? 0 : UNIT[t]
  // Some order of summation may overflow.
  if (magnitude > (LARGEST[combined] ?? Number.MAX_VALUE)) return Number.POSITIVE_INFINITY
  return error + (terms * UNIT[combined] + storedUnit) * magnitude + LEAST_NORMAL[combined]
}

export const undecide = (b: Bounds): void => void b.error.fill(Number.POSITIVE_INFINITY)
