/**
 * Recurrence of the values of a sequence, which determines cache hits of accesses at these values: the working set of a
 * window follows from the distances between references (Denning and Schwartz, CACM 1972).
 */

/** Histogram of reuse distances by powers of two: counts and sums; first occurrences are excluded. */
export interface Recurrence {
  readonly elements: number
  readonly counts: readonly number[]
  readonly distances: readonly number[]
  /** Frequency of the most frequent value. */
  readonly maxFrequency: number
}

const POWERS = 32
/** Ratio of the range of values to their number above which a hash map replaces tables (large for bitmaps). */
const SPARSE_RATIO = 16

/**
 * Maximum number of values examined; the histogram is scaled to the length. Padded formats may have thousands of times
 * more.
 */
const MAX_EXAMINED = 1 << 18

/**
 * Histogram in one pass. Groups of `per` neighbouring values count as one value; values outside 0 … `below` - 1 are
 * skipped.
 */
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

/** The first `length` values of an array or a typed array. */
const prefix = (values: ArrayLike<number>, length: number): ArrayLike<number> =>
  Array.isArray(values) ? values.slice(0, length) : (values as Int32Array).subarray(0, length)

const scale = ({ elements, counts, distances, maxFrequency }: Recurrence, factor: number): Recurrence => ({
  elements: elements * factor,
  counts: counts.map((n) => n * factor),
  distances: distances.map((n) => n * factor),
  maxFrequency: maxFrequency * factor,
})

/** Weighted mixture of several sequences: extrapolates samples to the whole. */
export function weightedRecurrence(
  parts: readonly { readonly recurrence: Recurrence; readonly weight: number }[],
): Recurrence {
  const sum = (field: (r: Recurrence) => number): number =>
    parts.reduce((n, p) => n + p.weight * field(p.recurrence), 0)
  const histogram = (field: (r: Recurrence) => readonly number[]): number[] =>
    Array.from({ length: POWERS }, (_, k) => sum((r) => field(r)[k]!))
  return {
    elements: sum((r) => r.elements),
    counts: histogram((r) => r.counts),
    distances: histogram((r) => r.distances),
    maxFrequency: Math.max(0, ...parts.map((p) => p.recurrence.maxFrequency)),
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
