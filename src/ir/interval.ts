/** Bounds of integer expressions, exactly: where 32 bits hold every result, and where they do not. */
import { isFloat } from './dtype.ts'
import type { Expr } from './expr.ts'
import { children } from './expr-tree.ts'
import { foldInt } from './fold.ts'
import type { BinaryOp } from './ops.ts'

export interface Interval {
  readonly lo: number
  readonly hi: number
  /** Whether all of it fits an i32; reals always do. */
  readonly fits: boolean
  /** Whether the bounds follow from what is known; otherwise they are those of the type, of data for example. */
  readonly known: boolean
}

export const LOWEST = -(2 ** 31)
export const HIGHEST = 2 ** 31 - 1

/** All of `lo … hi`, ends included. Beyond 2^53 the ends are rounded, far outside of 32 bits. */
export const interval = (lo: number, hi: number, known = true): Interval => ({
  // A product of 0 and an infinite end is 0; no end is -0.
  lo: lo + 0,
  hi: hi + 0,
  fits: lo >= LOWEST && hi <= HIGHEST,
  known,
})
/** What is computed in 32 bits, or checked to be. */
export const ANY = interval(LOWEST, HIGHEST, false)
/** Offsets and positions of which nothing more is known. */
export const NATURAL = interval(0, HIGHEST, false)
const TRUTH = interval(0, 1)

/** Bounds of `e` from those of its operands, in the order of `children`; `range` knows variables. */
export function intervalOf(
  e: Expr,
  operands: readonly Interval[],
  range: (name: string) => readonly [number, number] | undefined,
): Interval {
  if (isFloat(e.dtype)) return { lo: -Infinity, hi: Infinity, fits: true, known: false }
  const [a, b, c] = operands
  switch (e.kind) {
    case 'const':
      return interval(e.value, e.value)
    case 'var': {
      const r = range(e.name)
      return r ? interval(r[0], r[1]) : ANY
    }
    case 'unary':
      return e.op === 'neg' ? interval(-a!.hi, -a!.lo, a!.known) : TRUTH
    case 'binary':
      return ofBinary(e.op, a!, b!)
    case 'select':
      if (a!.lo > 0) return b!
      if (a!.hi === 0) return c!
      return interval(Math.min(b!.lo, c!.lo), Math.max(b!.hi, c!.hi), b!.known && c!.known)
    case 'cast':
      return Number.isFinite(a!.lo) ? a! : { lo: LOWEST, hi: HIGHEST, fits: false, known: false }
    case 'call':
      return e.fn === 'abs'
        ? interval(Math.max(0, a!.lo, -a!.hi), Math.max(-a!.lo, a!.hi), a!.known)
        : e.fn === 'popcount'
          ? interval(0, 32)
          : ANY
    default:
      return ANY
  }
}

/** Bounds where they are known. Divisors are taken for what they may be: `x / 0` is 0. */
export function boundsOf(
  e: Expr,
  range: (name: string) => readonly [number, number] | undefined,
): Interval | undefined {
  const go = (x: Expr): Interval => intervalOf(x, children(x).map(go), range)
  const found = go(e)
  return found.known ? found : undefined
}

/** The first part of an i32 expression that may leave 32 bits, where its bounds are known. */
export function overflowIn(
  e: Expr,
  range: (name: string) => readonly [number, number] | undefined,
): (Interval & { readonly expr: Expr }) | undefined {
  let found: (Interval & { readonly expr: Expr }) | undefined
  const go = (x: Expr): Interval => {
    const own = intervalOf(x, children(x).map(go), range)
    if (own.fits || x.dtype !== 'i32') return own
    if (own.known) found ??= { ...own, expr: x }
    return ANY
  }
  go(e)
  return found
}

function ofBinary(op: BinaryOp, a: Interval, b: Interval): Interval {
  const known = a.known && b.known
  switch (op) {
    case 'add':
      return interval(a.lo + b.lo, a.hi + b.hi, known)
    case 'sub':
      return interval(a.lo - b.hi, a.hi - b.lo, known)
    case 'mul': {
      const corners = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi]
      return interval(Math.min(...corners), Math.max(...corners), known)
    }
    case 'min': {
      const lo = Math.min(a.lo, b.lo)
      // What is bounded on one side by its type is bounded on the other by what is known.
      return interval(lo, Math.min(a.hi, b.hi), known || ((a.known || b.known) && lo > LOWEST))
    }
    case 'max': {
      const hi = Math.max(a.hi, b.hi)
      return interval(Math.max(a.lo, b.lo), hi, known || ((a.known || b.known) && hi < HIGHEST))
    }
    case 'div':
    case 'quo':
      return quotient(op === 'div' ? Math.floor : Math.trunc, a, b, known)
    case 'mod':
    case 'rem':
      return remainder(op, a, b, known)
    case 'lt':
      return compared(a.hi < b.lo, a.lo >= b.hi)
    case 'le':
      return compared(a.hi <= b.lo, a.lo > b.hi)
    case 'gt':
      return compared(a.lo > b.hi, a.hi <= b.lo)
    case 'ge':
      return compared(a.lo >= b.hi, a.hi < b.lo)
    case 'eq':
      return compared(a.lo === a.hi && b.lo === b.hi && a.lo === b.lo, a.hi < b.lo || b.hi < a.lo)
    case 'ne':
      return compared(a.hi < b.lo || b.hi < a.lo, a.lo === a.hi && b.lo === b.hi && a.lo === b.lo)
    case 'and':
      return compared(a.lo > 0 && b.lo > 0, a.hi === 0 || b.hi === 0)
    case 'or':
      return compared(a.lo > 0 || b.lo > 0, a.hi === 0 && b.hi === 0)
  }
}

const compared = (holds: boolean, fails: boolean): Interval =>
  holds ? interval(1, 1) : fails ? interval(0, 0) : TRUTH

/** Quotients are monotone on each side of a divisor of 0, which gives 0. */
function quotient(round: (x: number) => number, a: Interval, b: Interval, known: boolean): Interval {
  const ends = (lo: number, hi: number): number[] =>
    lo > hi ? [] : [a.lo / lo, a.lo / hi, a.hi / lo, a.hi / hi].map(round)
  const all = [
    ...ends(Math.max(1, b.lo), b.hi),
    ...ends(b.lo, Math.min(-1, b.hi)),
    ...(b.lo <= 0 && b.hi >= 0 ? [0] : []),
  ]
  return interval(Math.min(...all), Math.max(...all), known)
}

/** Of a positive divisor, what is left is less than it, whatever was divided. */
function remainder(op: 'mod' | 'rem', a: Interval, b: Interval, known: boolean): Interval {
  if (a.lo === a.hi && b.lo === b.hi) {
    const value = foldInt(op, a.lo, b.lo) ?? 0
    return interval(value, value, known)
  }
  if (b.lo >= 0) {
    const below = Math.max(0, b.hi - 1)
    const all = a.lo >= 0 ? interval(0, Math.min(a.hi, below), b.known || known) : undefined
    if (all) return all.hi === a.hi && b.lo > a.hi ? a : all
    return op === 'mod'
      ? interval(0, below, b.known)
      : interval(Math.max(a.lo, -below), Math.max(0, Math.min(a.hi, below)), b.known)
  }
  const most = Math.max(Math.abs(b.lo), Math.abs(b.hi), Math.abs(a.lo), Math.abs(a.hi))
  return interval(-most, most, known)
}
