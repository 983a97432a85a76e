/**
 * Intervals with symbolic ends: bounds of integer expressions as expressions over sizes, so that a plan can state them
 * as data. Each end also has constant bounds that hold for all sizes, by which cases are decided.
 */
import { HIGHEST, LOWEST } from './interval.ts'
import { intervalsOver, type Range } from './interval-arithmetic.ts'
import { constantEnd, type End, end, node, ZERO } from './symbolic-ends.ts'

export type SymbolicInterval = Range<End>

export const symbolic = (lo: End, hi: End, knownLo = true, knownHi = knownLo): SymbolicInterval => ({
  lo,
  hi,
  knownLo,
  knownHi,
})

export const { wholeOf, rangeOf: symbolicIntervalOf } = intervalsOver<End, SymbolicInterval>({
  range: symbolic,
  constant: constantEnd,
  combine: end,
  select: (cond, a, b) => node('select', [cond, a, b], Math.min(a.lo, b.lo), Math.max(a.hi, b.hi)),
  same: (a, b) => a.key === b.key,
  least: (e) => e.lo,
  most: (e) => e.hi,
})

export const ANY = symbolic(constantEnd(LOWEST), constantEnd(HIGHEST), false)
export const NATURAL = symbolic(ZERO, constantEnd(HIGHEST), true, false)

/** True if both ends are within these numbers for all sizes. */
export const isWithin = (x: SymbolicInterval, lo: number, hi: number): boolean =>
  x.lo.lo >= lo && x.hi.hi <= hi
