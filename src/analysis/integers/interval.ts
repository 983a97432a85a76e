/** Interval arithmetic: exact bounds of integer expressions, and whether 32 bits hold every result. */

import { type Expr, isZero } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { computeType, type ExprType, INT_RANGE, isFloat, isWord, scalarType } from '../../ir/values/dtype.ts'
import { type BinaryOp, MATH, type MathFn } from '../../ir/values/math.ts'
import { foldInt, TRUTH, wrap } from '../../ir/values/numeric.ts'
import { endsOfBits } from './bit-ranges.ts'

export interface Interval {
  readonly lo: number
  readonly hi: number
  /** True if the whole interval fits an i32; always true for reals. */
  readonly fits: boolean
  /** True if both bounds follow from facts; otherwise they are those of the type, for example for data. */
  readonly known: boolean
  readonly knownLo: boolean
  readonly knownHi: boolean
}

export const LOWEST = -(2 ** 31)
export const HIGHEST = 2 ** 31 - 1

/** Returns the interval `lo … hi`, ends included. Ends beyond 2^53 are rounded, far outside of 32 bits. */
export const interval = (lo: number, hi: number, knownLo = true, knownHi = knownLo): Interval => ({
  // Converts -0 to 0.
  lo: lo + 0,
  hi: hi + 0,
  fits: lo >= LOWEST && hi <= HIGHEST,
  known: knownLo && knownHi,
  knownLo,
  knownHi,
})

/** Returns the end by which a range is known to exceed 32 bits; undefined if no end is known to exceed them. */
export const beyond = (x: Interval): 'lo' | 'hi' | undefined =>
  x.lo < LOWEST && x.knownLo ? 'lo' : x.hi > HIGHEST && x.knownHi ? 'hi' : undefined
/** The range of values that are computed in 32 bits, or checked to fit. */
export const ANY = interval(LOWEST, HIGHEST, false)
/** The range of offsets and positions without further facts. */
export const NATURAL = interval(0, HIGHEST, true, false)
const EITHER = interval(0, 1)
const REAL: Interval = { ...interval(-Infinity, Infinity, false), fits: true }

/** Returns the range of a type, which is all that is known of data. */
export function wholeOf(dtype: ExprType): Interval {
  if (isFloat(dtype)) return REAL
  if (dtype === 'bool') return EITHER
  if (isWord(dtype)) return ANY
  const [lo, hi] = INT_RANGE[dtype as 'u32' | 'i8' | 'u8']
  return interval(lo, hi, true, dtype !== 'u32')
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

export type NamedRange = (name: string) => readonly [number, number] | undefined

/** Returns the bounds of `e` from those of its operands, in the order of `children`. `range` returns the range of a variable. */
export function intervalOf(e: Expr, operands: readonly Interval[], range?: NamedRange): Interval {
  if (isFloat(e.dtype)) return REAL
  const [a, b, c] = operands
  switch (e.kind) {
    case 'const':
      return interval(e.value, e.value)
    case 'var': {
      const r = range?.(e.name)
      return r ? interval(r[0], r[1]) : wholeOf(e.dtype)
    }
    case 'unary':
      return e.op === 'neg' ? interval(-a!.hi, -a!.lo, a!.knownHi, a!.knownLo) : EITHER
    case 'binary': {
      const by = e.op === 'add' ? addedBelowZero(e.a, e.b) : 0
      // A select adds c to negative values only: a remainder as `%` computes it.
      if (by > 0) return interval(Math.min(0, a!.lo + by), Math.max(by - 1, a!.hi), a!.knownLo, a!.knownHi)
      return binaryInterval(e.op, a!, b!)
    }
    case 'select':
      if (a!.lo > 0) return b!
      if (a!.hi === 0) return c!
      return interval(
        Math.min(b!.lo, c!.lo),
        Math.max(b!.hi, c!.hi),
        b!.knownLo && c!.knownLo,
        b!.knownHi && c!.knownHi,
      )
    case 'cast':
      if (e.dtype === 'bool') return EITHER
      return Number.isFinite(a!.lo) ? a! : { ...wholeOf(e.dtype), fits: false }
    case 'call':
      if (e.fn === 'abs') return interval(Math.max(0, a!.lo, -a!.hi), Math.max(-a!.lo, a!.hi), true, a!.known)
      if (e.fn === 'sign') return interval(-1, 1)
      return MATH[e.fn].type === 'bits' ? ofBits(e.fn, a!, b) : wholeOf(e.dtype)
    // A search returns its start, or a position up to its end.
    case 'search':
      return interval(a!.lo, Math.max(a!.hi, b!.hi), a!.knownLo, a!.knownHi && b!.knownHi)
    default:
      return wholeOf(e.dtype)
  }
}

/**
 * Returns the range of a bit operation. An end is known if it is not the end of the range of all words, or if the
 * result has no sign while the operand has one.
 */
function ofBits(fn: MathFn, x: Interval, y?: Interval): Interval {
  const [lo, hi] = endsOfBits(fn, [x.lo, x.hi], y && [y.lo, y.hi])
  return interval(lo, hi, lo > LOWEST, hi < HIGHEST || (lo >= 0 && x.lo < 0))
}

/** Returns c of `x + select(x < 0, c, 0)`; 0 for other sums. `defined` returns the expression that a name stands for. */
export function addedBelowZero(x: Expr, e: Expr, defined: (e: Expr) => Expr = (y) => y): number {
  const cond = e.kind === 'select' ? defined(e.cond) : e
  const matches =
    e.kind === 'select' &&
    cond.kind === 'binary' &&
    cond.op === 'lt' &&
    sameExpr(defined(cond.a), x) &&
    isZero(cond.b)
  return matches && e.then.kind === 'const' && isZero(e.else) ? e.then.value : 0
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

export const isNonNegative = (x: Interval): boolean => x.knownLo && x.lo >= 0

/** Returns whether the value is known to be an index of `n` elements: `0 <= x < n`. */
export const isIndex = (x: Interval, n: number): boolean => x.known && x.lo >= 0 && x.hi < n

export function binaryInterval(op: BinaryOp, a: Interval, b: Interval): Interval {
  const known = a.known && b.known
  switch (op) {
    case 'add':
      return interval(a.lo + b.lo, a.hi + b.hi, a.knownLo && b.knownLo, a.knownHi && b.knownHi)
    case 'sub':
      return interval(a.lo - b.hi, a.hi - b.lo, a.knownLo && b.knownHi, a.knownHi && b.knownLo)
    case 'mul': {
      const corners = ends(a).flatMap(([x, k]) =>
        ends(b).map(
          ([y, l]): End => [x === 0 || y === 0 ? 0 : x * y, (k && l) || (x === 0 && k) || (y === 0 && l)],
        ),
      )
      const lo = Math.min(...corners.map(([x]) => x))
      const hi = Math.max(...corners.map(([x]) => x))
      const known = (end: number): boolean => corners.some(([x, k]) => k && x === end)
      return interval(lo, hi, known(lo), known(hi))
    }
    // One operand with a known bound bounds the result on one side, even if the other is unknown.
    case 'min':
    case 'max': {
      const both = [a.knownLo && b.knownLo, a.knownHi && b.knownHi] as const
      const [lo, hi] = [Math[op](a.lo, b.lo), Math[op](a.hi, b.hi)]
      return op === 'min'
        ? interval(lo, hi, both[0], a.knownHi || b.knownHi)
        : interval(lo, hi, a.knownLo || b.knownLo, both[1])
    }
    case 'div':
    case 'quo':
      return quotient(op === 'div' ? Math.floor : Math.trunc, a, b, known)
    case 'mod':
    case 'rem':
      return remainder(op, a, b, known)
    case 'eq':
    case 'ne': {
      const same = a.lo === a.hi && b.lo === b.hi && a.lo === b.lo
      const apart = a.hi < b.lo || b.hi < a.lo
      return op === 'eq' ? compared(same, apart) : compared(apart, same)
    }
    // Other comparisons are decided by the corners.
    default: {
      const truths = [a.lo, a.hi].flatMap((x) => [b.lo, b.hi].map((y) => TRUTH[op](x, y)))
      return compared(!truths.includes(0), !truths.includes(1))
    }
  }
}

type End = readonly [value: number, known: boolean]

const ends = (x: Interval): readonly End[] => [
  [x.lo, x.knownLo],
  [x.hi, x.knownHi],
]

const compared = (holds: boolean, fails: boolean): Interval =>
  holds ? interval(1, 1) : fails ? interval(0, 0) : EITHER

/** Returns the range of a quotient. It is monotone on each side of the divisor 0, for which the quotient is 0. */
function quotient(round: (x: number) => number, a: Interval, b: Interval, known: boolean): Interval {
  const ends = (lo: number, hi: number): number[] =>
    lo > hi ? [] : [a.lo / lo, a.lo / hi, a.hi / lo, a.hi / hi].map(round)
  const all = [
    ...ends(Math.max(1, b.lo), b.hi),
    ...ends(b.lo, Math.min(-1, b.hi)),
    ...(b.lo <= 0 && b.hi >= 0 ? [0] : []),
  ]
  const [lo, hi] = [Math.min(...all), Math.max(...all)]
  // With a positive divisor, a known end of the dividend gives a known end of the quotient.
  if (b.lo > 0 && b.known) return interval(lo, hi, a.knownLo, a.knownHi)
  return interval(lo, hi, known || (lo >= 0 && isNonNegative(a) && isNonNegative(b)), known)
}

/**
 * Returns the range of a remainder. It is nearer to 0 than the divisor, and has the sign of the divisor (`mod`) or of
 * the dividend (`rem`).
 */
function remainder(op: 'mod' | 'rem', a: Interval, b: Interval, known: boolean): Interval {
  if (a.lo === a.hi && b.lo === b.hi) {
    const value = foldInt(op, a.lo, b.lo) ?? 0
    return interval(value, value, known)
  }
  if (b.lo >= 0 && a.lo >= 0) {
    const all = interval(0, Math.min(a.hi, Math.max(0, b.hi - 1)), true, a.knownHi || b.knownHi)
    return all.hi === a.hi && b.lo > a.hi ? a : all
  }
  if (op === 'mod')
    return interval(Math.min(0, b.lo + 1), Math.max(0, b.hi - 1), b.lo >= 0 || b.knownLo, b.knownHi)
  const most = Math.max(0, Math.abs(b.lo) - 1, Math.abs(b.hi) - 1)
  return interval(Math.min(0, Math.max(a.lo, -most)), Math.max(0, Math.min(a.hi, most)), b.known)
}
