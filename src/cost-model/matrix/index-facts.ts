/** Facts about the index arrays of a kernel for given data, or for a stratum of them. */

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
export interface IndexFacts extends Pick<Structure, 'params' | 'lengths' | 'recurrence' | 'meanMaxima'> {
  readonly changes: ReadonlyMap<string, Ratio>
  readonly filled: ReadonlyMap<string, Ratio>
}

/** A share as counts, so that strata can be added up. */
export interface Ratio {
  readonly total: number
  readonly count: number
}

/** Lengths of segments as a few weighted values, so that costs depending on a length have an expectation. */
export interface Distribution {
  readonly count: number
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

/** A value of a sample, with the number of such samples in the whole. */
export interface Weighted<T> {
  readonly value: T
  readonly weight: number
}

/** Weighted mixture of several groups of segments: extrapolates samples to the whole. */
export function mixture(parts: readonly Weighted<Distribution>[]): Distribution {
  const counts = new Map<number, number>()
  for (const { value, weight } of parts)
    for (const { length, share } of value.bins)
      counts.set(length, (counts.get(length) ?? 0) + weight * share * value.count)
  const combined = distributionOf(counts)
  return { ...combined, longest: Math.max(0, ...parts.map((p) => p.value.longest)) }
}

// Recurrence of the values of a sequence, which determines cache hits of accesses at these values: the working set of a window follows from the distances between references (Denning and Schwartz, CACM 1972).

/** Histogram of reuse distances by powers of two: counts and sums; first occurrences are excluded. */
export interface Recurrence {
  readonly elements: number
  readonly counts: readonly number[]
  readonly distances: readonly number[]
  readonly maxFrequency: number
}

const POWERS = 32
/** Ratio of the range of values to their number above which a hash map replaces tables (large for bitmaps). */
const SPARSE_RATIO = 16

/** Maximum number of values examined, because padding may be long; the histogram is scaled to the length. */
const MAX_EXAMINED = 1 << 18

/** Histogram in one pass. Groups of `per` values count as one value; values outside 0 … `below` - 1 are skipped. */
export function recurrenceOf(
  sequence: ArrayLike<number>,
  below: number,
  per = 1,
  limit = MAX_EXAMINED,
): Recurrence {
  const values = sequence.length > limit ? prefix(sequence, limit) : sequence
  const span = Math.max(1, Math.ceil(below / per))
  const ids = span > SPARSE_RATIO * (values.length + 1) ? new Map<number, number>() : null
  const groups = ids ? values.length : span
  const last = new Int32Array(groups).fill(-1)
  const frequencies = new Int32Array(groups)
  const counts = new Array<number>(POWERS).fill(0)
  const distances = new Array<number>(POWERS).fill(0)
  let [elements, maxFrequency] = [0, 0]
  for (let k = 0; k < values.length; k++) {
    const v = values[k]!
    if (v < 0 || v >= below) continue
    const value = per === 1 ? v : Math.floor(v / per)
    const g = ids ? (ids.get(value) ?? ids.size) : value
    ids?.set(value, g)
    const previous = last[g]!
    if (previous >= 0) {
      const distance = elements - previous
      const power = 32 - Math.clz32(distance - 1)
      counts[power]!++
      distances[power]! += distance
    }
    last[g] = elements++
    if (++frequencies[g]! > maxFrequency) maxFrequency = frequencies[g]!
  }
  const histogram = { elements, counts, distances, maxFrequency }
  return values === sequence ? histogram : scale(histogram, sequence.length / limit)
}

const prefix = (values: ArrayLike<number>, length: number): ArrayLike<number> =>
  Array.isArray(values) ? values.slice(0, length) : (values as Int32Array).subarray(0, length)

const scale = ({ elements, counts, distances, maxFrequency }: Recurrence, factor: number): Recurrence => ({
  elements: elements * factor,
  counts: counts.map((n) => n * factor),
  distances: distances.map((n) => n * factor),
  maxFrequency: maxFrequency * factor,
})

/** Weighted mixture of several sequences: extrapolates samples to the whole. */
export function weightedRecurrence(parts: readonly Weighted<Recurrence>[]): Recurrence {
  const sum = (field: (r: Recurrence) => number): number =>
    parts.reduce((n, p) => n + p.weight * field(p.value), 0)
  const histogram = (field: (r: Recurrence) => readonly number[]): number[] =>
    Array.from({ length: POWERS }, (_, k) => sum((r) => field(r)[k]!))
  return {
    elements: sum((r) => r.elements),
    counts: histogram((r) => r.counts),
    distances: histogram((r) => r.distances),
    maxFrequency: Math.max(0, ...parts.map((p) => p.value.maxFrequency)),
  }
}

/** Elements per distinct value in a window of 2^power consecutive elements, mean over all positions of the window. */
function reuseAtPower({ elements, counts, distances }: Recurrence, power: number): number {
  const window = 2 ** power
  let [nearCount, nearDistance] = [0, 0]
  for (let k = 0; k <= power && k < POWERS; k++) {
    nearCount += counts[k]!
    nearDistance += distances[k]!
  }
  const distinct = nearDistance + (elements - nearCount) * window
  return distinct === 0 ? 1 : (elements * window) / distinct
}

/** Elements per distinct value in a window of any size, interpolated between powers of two. */
export function reuseWithin(r: Recurrence, window: number): number {
  const power = Math.log2(Math.max(1, window))
  const [lower, upper] = [Math.floor(power), Math.ceil(power)]
  const [a, b] = [reuseAtPower(r, lower), reuseAtPower(r, upper)]
  return a * (b / a) ** (power - lower)
}
