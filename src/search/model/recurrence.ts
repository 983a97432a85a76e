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
  readonly most: number
}

const POWERS = 32
/** Ratio of possible to actual values (large for bitmaps) above which tables are sparse. */
const SPARSE = 16

/** Number of values examined; the rest is extrapolated. Padding formats may have thousands of times more. */
const LOOKED = 1 << 18

/** One pass. Neighbouring values, `per` of them, count as one; values below 0 or from `below` on are none. */
export function recurrenceOf(all: ArrayLike<number>, below: number, per = 1, looked = LOOKED): Recurrence {
  const values = all.length > looked ? sliceOf(all, looked) : all
  const span = Math.max(1, Math.ceil(below / per))
  const named = span > SPARSE * (values.length + 1) ? new Map<number, number>() : null
  const groups = named ? values.length : span
  const last = new Int32Array(groups).fill(-1)
  const times = new Int32Array(groups)
  const counts = new Array<number>(POWERS).fill(0)
  const distances = new Array<number>(POWERS).fill(0)
  let [elements, most] = [0, 0]
  for (let k = 0; k < values.length; k++) {
    const v = values[k]!
    if (v < 0 || v >= below) continue
    const value = per === 1 ? v : Math.floor(v / per)
    const g = named ? (named.get(value) ?? named.size) : value
    named?.set(value, g)
    const before = last[g]!
    if (before >= 0) {
      const distance = elements - before
      const power = 32 - Math.clz32(distance - 1)
      counts[power]!++
      distances[power]! += distance
    }
    last[g] = elements++
    if (++times[g]! > most) most = times[g]!
  }
  const part = { elements, counts, distances, most }
  return values === all ? part : scaled(part, all.length / looked)
}

/** The first of an array, of whichever kind. */
const sliceOf = (all: ArrayLike<number>, length: number): ArrayLike<number> =>
  Array.isArray(all) ? all.slice(0, length) : (all as Int32Array).subarray(0, length)

const scaled = ({ elements, counts, distances, most }: Recurrence, by: number): Recurrence => ({
  elements: elements * by,
  counts: counts.map((n) => n * by),
  distances: distances.map((n) => n * by),
  most: most * by,
})

/** Weighted mixture of several sequences: extrapolates samples to the whole. */
export function weightedRecurrence(
  parts: readonly { readonly of: Recurrence; readonly weight: number }[],
): Recurrence {
  const sum = (of: (r: Recurrence) => number): number => parts.reduce((n, p) => n + p.weight * of(p.of), 0)
  const each = (of: (r: Recurrence) => readonly number[]): number[] =>
    Array.from({ length: POWERS }, (_, k) => sum((r) => of(r)[k]!))
  return {
    elements: sum((r) => r.elements),
    counts: each((r) => r.counts),
    distances: each((r) => r.distances),
    most: Math.max(0, ...parts.map((p) => p.of.most)),
  }
}

/** Elements for each different value of a window of 2^power that follow each other, the mean over all places of it. */
function atPower({ elements, counts, distances }: Recurrence, power: number): number {
  const window = 2 ** power
  let [near, inside] = [0, 0]
  for (let k = 0; k <= power && k < POWERS; k++) {
    near += counts[k]!
    inside += distances[k]!
  }
  const different = inside + (elements - near) * window
  return different === 0 ? 1 : (elements * window) / different
}

/** The same of any window, between powers of two. */
export function reuseWithin(r: Recurrence, window: number): number {
  const power = Math.log2(Math.max(1, window))
  const [lower, upper] = [Math.floor(power), Math.ceil(power)]
  const [a, b] = [atPower(r, lower), atPower(r, upper)]
  return a * (b / a) ** (power - lower)
}
