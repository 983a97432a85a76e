/** Intervals of numbers: exact bounds of integer expressions, and whether 32 bits hold every result. */
import type { Expr } from '../../ir/expressions/expr.ts'
import { SIZE_OPERATORS } from '../../ir/expressions/size-expressions.ts'
import { computeType, INT_RANGE, isFloat, scalarType } from '../../ir/values/dtype.ts'
import { wrap } from '../../ir/values/numeric.ts'
import { intervalsOver, type Range } from './interval-arithmetic.ts'

export const LOWEST = -(2 ** 31)
export const HIGHEST = 2 ** 31 - 1

export interface Interval extends Range<number> {
  /** True if the whole interval fits an i32; always true for reals. */
  readonly fits: boolean
  readonly known: boolean
}

/** Returns the interval `lo … hi`, ends included. Ends beyond 2^53 are rounded, far outside of 32 bits. */
export const interval = (lo: number, hi: number, knownLo = true, knownHi = knownLo): Interval => ({
  // Converts -0 to 0.
  lo: lo + 0,
  hi: hi + 0,
  fits: lo === -Infinity || (lo >= LOWEST && hi <= HIGHEST),
  known: knownLo && knownHi,
  knownLo,
  knownHi,
})

const NUMBERS = intervalsOver<number, Interval>({
  range: interval,
  constant: (value) => value,
  combine: (op, a, b) => SIZE_OPERATORS[op]!(a, b),
  select: (cond, a, b) => (cond !== 0 ? a : b),
  same: (a, b) => a === b,
  least: (e) => e,
  most: (e) => e,
})
const { wholeOf } = NUMBERS
export const binaryInterval = NUMBERS.binary

/** The range of values that are computed in 32 bits, or checked to fit. */
export const ANY = interval(LOWEST, HIGHEST, false)
/** The range of offsets and positions without further facts. */
export const NATURAL = interval(0, HIGHEST, true, false)

export type NamedRange = (name: string) => readonly [number, number] | undefined

/** Returns the bounds of `e` from those of its operands, in the order of `children`. `range` returns the range of a variable. */
export function intervalOf(e: Expr, operands: readonly Interval[], range?: NamedRange): Interval {
  const own = e.kind === 'var' && !isFloat(e.dtype) ? range?.(e.name) : undefined
  if (own) return interval(own[0], own[1])
  const found = NUMBERS.rangeOf(e, operands)
  const isTruncated = e.kind === 'cast' && isFloat(e.x.dtype) && !isFloat(e.dtype) && e.dtype !== 'bool'
  return isTruncated ? { ...found, fits: false } : found
}

/**
 * Returns the range of a node in a register, given its exact range: the same if the node's type holds all of it,
 * otherwise the range of the type, because the value wraps. Operands of 8 bits are computed in 32 bits, and only casts
 * narrow them again.
 */
export function inRegister(e: Expr, exact: Interval): Interval {
  const dtype = e.kind === 'cast' ? scalarType(e.dtype) : computeType(e.dtype)
  if (isFloat(dtype) || dtype === 'bool') return exact
  const [lo, hi] = INT_RANGE[dtype as 'i32']
  if (exact.lo >= lo && exact.hi <= hi) return exact
  if (exact.lo !== exact.hi || !Number.isSafeInteger(exact.lo)) return wholeOf(dtype)
  const value = wrap(dtype)(exact.lo)
  return interval(value, value, exact.known)
}

/**
 * Returns a range narrowed by other known bounds; bounds that state nothing are infinite, or the bounds of the type.
 */
export function narrowed(range: Interval, lo: number, hi: number): Interval {
  const least = Math.max(range.lo, lo)
  // Code with contradictory facts is never reached.
  return interval(
    least,
    Math.max(least, Math.min(range.hi, hi)),
    (lo > LOWEST && lo >= range.lo) || range.knownLo,
    (hi < HIGHEST && hi <= range.hi) || range.knownHi,
  )
}

/** Returns the end by which a range is known to exceed 32 bits; undefined if no end is known to exceed them. */
export const beyond = (x: Interval): 'lo' | 'hi' | undefined =>
  x.lo < LOWEST && x.knownLo ? 'lo' : x.hi > HIGHEST && x.knownHi ? 'hi' : undefined

export const isNonNegative = (x: Interval): boolean => x.knownLo && x.lo >= 0

/** Returns whether the value is known to be an index of `n` elements: `0 <= x < n`. */
export const isIndex = (x: Interval, n: number): boolean => x.known && x.lo >= 0 && x.hi < n
