/**
 * How far a computed value may lie from the reference's. Beside each value in float64 goes a bound of its error: what
 * any order of operations, each rounded in the type that it is computed in, can differ by (Higham, Accuracy and
 * Stability of Numerical Algorithms, 2002, sections 3.1 and 4.2: a sum of n terms errs by (n - 1) u Σ|t| at most, in
 * whatever order). 0: every correct program computes this very value. Infinity: undecided, anything may come.
 */
import type { Dtype } from '../ir/dtype.ts'
import { rounding } from '../ir/rounding.ts'

export const UNDECIDED = Number.POSITIVE_INFINITY

/**
 * The unit roundoff u: the distance of neighbouring numbers at 1, twice what rounding to nearest takes, since tensor cores
 * round sums toward zero, and in f64 the reference rounds as well. 0 where arithmetic is exact.
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

/** Smallest normal numbers: devices may take those below for 0. */
const LEAST: Readonly<Record<Dtype, number>> = {
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

/** The error bound of what a closure has just returned; each leaves its own here. */
export const last = { error: 0 }

/** Equal infinities are no distance apart. */
const distance = (a: number, b: number): number => (Object.is(a, b) || a === b ? 0 : Math.abs(a - b))

/** Where a value that lies within `error` of x ends after a function that never falls, and gives y for x. */
export function through(f: (x: number) => number, x: number, error: number, y: number): number {
  if (error === 0 || error === Number.POSITIVE_INFINITY) return error
  const e = Math.max(distance(f(x + error), y), distance(f(x - error), y))
  return Number.isNaN(e) ? Number.POSITIVE_INFINITY : e
}

/**
 * The same of a function to whole numbers. An error below 1 that reaches over a step is less than the step is high, so that
 * no bound in between is a correct result: undecided.
 */
export function throughSteps(f: (x: number) => number, x: number, error: number, y: number): number {
  const e = through(f, x, error, y)
  return e > 0 && error < 1 ? UNDECIDED : e
}

/** The same of two operands, of which the function falls with neither. */
export const throughBoth = (
  f: (x: number, y: number) => number,
  x: number,
  ex: number,
  y: number,
  ey: number,
  v: number,
): number => Math.max(distance(f(x + ex, y + ey), v), distance(f(x - ex, y - ey), v))

/**
 * The error of a result v in type t, when it comes from operands that bring `error` along: one more rounding, of
 * `units` roundoffs. An exact result of exact operands, where the type has it, is neither
 * rounded nor, unless it is subnormal, taken for 0.
 */
export function settled(v: number, error: number, t: Dtype, units = 1): number {
  if (!Number.isFinite(v)) return Number.isFinite(error) ? 0 : Number.POSITIVE_INFINITY
  const kept = units === 1 && Math.abs(v) >= LEAST[t] && rounding(t)(v) === v
  if (error === 0 && (v === 0 || kept)) return 0
  const e = error + units * UNIT[t] * Math.abs(v) + LEAST[t]
  const largest = LARGEST[t]
  return !(largest === undefined || Math.abs(v) + e <= largest) || Number.isNaN(e)
    ? Number.POSITIVE_INFINITY
    : e
}

/** 2^27 + 1, by which a double is split into two halves of its digits. */
const SPLIT = 134217729

/**
 * Whether v is the product of x and y and not the nearest double to it (Dekker, Numerische Mathematik 18, 1971). Where it is not,
 * compilers that contract `x * y + z` into one instruction compute another sum.
 */
export function isExactProduct(x: number, y: number, v: number): boolean {
  const [hx, hy] = [SPLIT * x - (SPLIT * x - x), SPLIT * y - (SPLIT * y - y)]
  const [lx, ly] = [x - hx, y - hy]
  return hx * hy - v + hx * ly + lx * hy + lx * ly === 0
}

/** What is known of the elements of a buffer that a kernel writes. */
export interface Bounds {
  readonly error: Float64Array
  /** Of buffers that are summed into: Σ|t| of each element's terms, how many, and whether any is no integer. */
  readonly sums: {
    readonly magnitude: Float64Array
    readonly terms: Float64Array
    readonly fractional: Uint8Array
  } | null
}

/** The error of an element that is of type `t` and was combined in type `combined`, before it is rounded to `t`. */
export function errorAt(b: Bounds, a: number, t: Dtype, combined: Dtype): number {
  const error = b.error[a]!
  const terms = b.sums ? b.sums.terms[a]! : 0
  if (!b.sums || terms === 0) return error
  const magnitude = b.sums.magnitude[a]!
  const exact = error === 0 && b.sums.fractional[a] === 0 && magnitude * UNIT[t] <= 2
  if (exact || Number.isNaN(magnitude) || magnitude === Number.POSITIVE_INFINITY) return error
  // Sums of several iterations meet in the type that is stored.
  const stored = t === combined ? 0 : UNIT[t]
  // Some order may leave the range on its way.
  if (magnitude > (LARGEST[combined] ?? Number.MAX_VALUE)) return Number.POSITIVE_INFINITY
  return error + (terms * UNIT[combined] + stored) * magnitude + LEAST[combined]
}

/** Nothing is known any more. */
export const undecide = (b: Bounds): void => void b.error.fill(Number.POSITIVE_INFINITY)
