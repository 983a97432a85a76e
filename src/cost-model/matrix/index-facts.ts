/** Facts about the index arrays of a kernel for given data, or for a stratum of them. */
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

/** Lengths of segments as a few weighted values, so that costs depending on a length have an expectation. */
export interface Distribution {
  /** Number of segments. */
  readonly count: number
  /** Sum of the lengths. */
  readonly sum: number
  readonly longest: number
  /** Ascending lengths with their shares of the segments; within a bin the mean, so that sums are exact. */
  readonly bins: readonly { readonly length: number; readonly share: number }[]
}

/** Up to this many different lengths are kept individually; more are grouped into bins of similar length. */
const MAX_EXACT_LENGTHS = 24

/** Distribution from the number of segments of each length; counts may be estimates. */
export function distributionOf(counts: ReadonlyMap<number, number>): Distribution {
  const ascending = [...counts].filter(([, n]) => n > 0).sort(([a], [b]) => a - b)
  const count = ascending.reduce((n, [, k]) => n + k, 0)
  const sum = ascending.reduce((n, [length, k]) => n + length * k, 0)
  const longest = ascending.at(-1)?.[0] ?? 0
  const bins = ascending.length <= MAX_EXACT_LENGTHS ? ascending : groupLengths(ascending)
  return { count, sum, longest, bins: bins.map(([length, n]) => ({ length, share: n / count })) }
}

/** Groups lengths into bins between powers of √2; lengths up to 4, the most frequent ones, stay exact. */
function groupLengths(ascending: readonly (readonly [number, number])[]): [number, number][] {
  const bins = new Map<number, { segments: number; sum: number }>()
  for (const [length, n] of ascending) {
    const key = length <= 4 ? length : 4 + Math.floor(2 * Math.log2(length / 4))
    const bin = bins.get(key) ?? { segments: 0, sum: 0 }
    bins.set(key, { segments: bin.segments + n, sum: bin.sum + n * length })
  }
  return [...bins].sort(([a], [b]) => a - b).map(([, b]) => [b.sum / b.segments, b.segments])
}

/** Weighted mixture of several groups of segments: extrapolates samples to the whole. */
export function mixture(
  parts: readonly { readonly distribution: Distribution; readonly weight: number }[],
): Distribution {
  const counts = new Map<number, number>()
  for (const { distribution, weight } of parts)
    for (const { length, share } of distribution.bins)
      counts.set(length, (counts.get(length) ?? 0) + weight * share * distribution.count)
  const combined = distributionOf(counts)
  return { ...combined, longest: Math.max(0, ...parts.map((p) => p.distribution.longest)) }
}
