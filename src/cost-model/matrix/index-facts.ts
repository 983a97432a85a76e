/** Facts about the index arrays of a kernel for given data, or for a stratum of them. */
import type { Distribution } from './distribution.ts'
import type { Recurrence } from './recurrence.ts'

export interface Structure {
  /** Values of the kernel's parameters: sizes, counts (extrapolated from a sample), measured widths. */
  readonly params: ReadonlyMap<string, number>
  /** Lengths of segments, by offset array. */
  readonly lengths: ReadonlyMap<string, Distribution>
  /** For offset arrays, the share of segments whose length differs from the previous one. */
  readonly changes: ReadonlyMap<string, number>
  /** For coordinate arrays, the share of entries below the extent, which are not padding. */
  readonly filled: ReadonlyMap<string, number>
  /** Recurrence by coordinate array, in the order of the format. */
  readonly recurrence: ReadonlyMap<string, CoordinateRecurrence>
  /** By offset array, the longest of 2^k neighbouring segments, mean over all such groups, by k. */
  readonly meanMaxima: ReadonlyMap<string, readonly number[]>
  /** Parameters that count positions of formats. */
  readonly counts: ReadonlySet<string>
}

/** Recurrence of coordinates: individually, and in groups of neighbours. */
export interface CoordinateRecurrence {
  readonly each: Recurrence
  /** Recurrence of groups as large as the floats in a sector. */
  readonly sectors: Recurrence
}

/** Number of group sizes 2^k that are distinguished, up to a block. */
export const GROUP_SIZES = 12

/** Facts collected from the index arrays of one sample, before extrapolation. */
export interface IndexFacts {
  readonly params: ReadonlyMap<string, number>
  readonly offsets: ReadonlyMap<string, Distribution>
  readonly changes: ReadonlyMap<string, Ratio>
  readonly coordinates: ReadonlyMap<string, Ratio>
  readonly recurrence: ReadonlyMap<string, CoordinateRecurrence>
  readonly meanMaxima: ReadonlyMap<string, readonly number[]>
}

/** A share as counts, so that strata can be added up. */
export interface Ratio {
  readonly total: number
  readonly count: number
}
