/** Facts about the index arrays of a kernel for given data, or for a stratum of them. */
import type { Distribution } from './distribution.ts'
import type { Recurrence } from './recurrence.ts'

export interface Structure {
  /** Values of the kernel's parameters: sizes, counts (of a sample: as many as there would be), measured widths. */
  readonly params: ReadonlyMap<string, number>
  /** Lengths of the segments that an array of offsets bounds. */
  readonly lengths: ReadonlyMap<string, Distribution>
  /** For offset arrays, the share of segments whose length differs from the previous one. */
  readonly changes: ReadonlyMap<string, number>
  /** For coordinate arrays, the share below the extent: no padding. */
  readonly filled: ReadonlyMap<string, number>
  /** Of an array of coordinates, in the order in which the format has them, how soon they recur. */
  readonly recurrence: ReadonlyMap<string, Coordinates>
  /** By arrays of offsets: of 2^k neighbouring segments the longest, the mean over all such groups, by k. */
  readonly longestOf: ReadonlyMap<string, readonly number[]>
  /** Those of the parameters that count positions of formats. */
  readonly counts: ReadonlySet<string>
}

/** Recurrence of coordinates: individually, and in groups of neighbours. */
export interface Coordinates {
  readonly each: Recurrence
  /** Recurrence of groups as large as the floats in a sector. */
  readonly sectors: Recurrence
}

/** Powers of two of neighbouring segments that are distinguished: up to a block. */
export const GROUPS = 12

export interface Found {
  readonly params: ReadonlyMap<string, number>
  readonly offsets: ReadonlyMap<string, Distribution>
  readonly changes: ReadonlyMap<string, Share>
  readonly coordinates: ReadonlyMap<string, Share>
  readonly recurrence: ReadonlyMap<string, Coordinates>
  readonly longestOf: ReadonlyMap<string, readonly number[]>
}

export interface Share {
  readonly all: number
  readonly filled: number
}
