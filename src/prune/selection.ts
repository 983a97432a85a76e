/**
 * Selects the elements and vectors to prune: ranks are global, ascending by (score, layer, position), and exact.
 *
 * Elements are too many to sort, so the threshold is found by a radix select: a histogram of the high half of their bits
 * finds the bucket, a histogram of the low half within it the exact value. Each pass reads the layers once, and a last pass
 * marks the elements below the threshold.
 */
import { vectorOrder } from './order.ts'
import { bitsOf } from './scores.ts'
import type { LayerShape, Mask, Scored } from './types.ts'

/** Elements that may be pruned of n at a sparsity, to a millionth of one: 0.29 of 100 are 29. */
export const targetOf = (sparsity: number, elements: number): number =>
  Math.min(elements, Math.floor(sparsity * elements + 1e-6))

export const elementsOf = (shapes: readonly LayerShape[]): number =>
  shapes.reduce((sum, s) => sum + s.rows * s.cols, 0)

/** Maximum number of elements that each layer may lose. */
export const roomsOf = ({ shapes, limits }: Scored, part = (limit: number): number => limit): number[] =>
  shapes.map((s, k) => targetOf(part(limits[k]!), s.rows * s.cols))

/** Request for the `target` lowest elements that are not in `taken`, at most `rooms[k]` of them in layer k. */
export interface ElementsAsked {
  readonly target: number
  readonly rooms: readonly number[]
  /** Masks of elements that are not candidates. */
  readonly taken?: readonly Mask[]
}

const HALF = 65536

/** Marks (1) of the elements of lowest rank. */
export async function lowestElements(given: Scored, asked: ElementsAsked): Promise<Mask[]> {
  const { target, rooms, taken } = asked
  const { shapes } = given
  const marks = shapes.map((s) => new Uint8Array(s.rows * s.cols))
  if (target <= 0) return marks
  const own = new Uint32Array(HALF)
  const all = new Float64Array(HALF)
  const eachLayer = async (pass: string, work: (bits: Uint32Array, k: number) => void): Promise<void> => {
    for (let k = 0; k < shapes.length; k++) work(bitsOf(await given.scores(k, pass)), k)
  }
  await eachLayer('elements, coarsely', (bits, k) => {
    countHigh(bits, taken?.[k], own.fill(0))
    addUpTo(rooms[k]!, own, all)
  })
  const coarse = reaching(all, target)
  const below = new Float64Array(shapes.length)
  all.fill(0)
  await eachLayer('elements, finely', (bits, k) => {
    below[k] = countLow(bits, taken?.[k], coarse.at, own.fill(0))
    addUpTo(rooms[k]! - below[k]!, own, all)
  })
  const fine = reaching(all, target - coarse.below)
  const threshold = coarse.at * HALF + fine.at
  // Of the elements that equal the threshold; all of them where rooms end before the target does.
  let ties = target - coarse.below - fine.below
  await eachLayer('elements, marked', (bits, k) => {
    const { less, equal } = countAround(bits, taken?.[k], threshold)
    const room = Math.max(0, rooms[k]! - less)
    const tied = Math.min(ties, equal, room)
    ties -= tied
    if (less <= rooms[k]!) mark(bits, taken?.[k], threshold, tied, marks[k]!)
    else {
      const { threshold: local, ties: some } = lowestOf(bits, taken?.[k], rooms[k]!, own)
      mark(bits, taken?.[k], local, some, marks[k]!)
    }
  })
  return marks
}

/**
 * Index of the bucket where the cumulative count reaches the target, and the count below it; the last bucket if it never
 * does.
 */
function reaching(
  counts: ArrayLike<number>,
  target: number,
): { readonly at: number; readonly below: number } {
  let below = 0
  for (let at = 0; at < counts.length; at++) {
    if (below + counts[at]! >= target) return { at, below }
    below += counts[at]!
  }
  return { at: counts.length - 1, below: below - counts[counts.length - 1]! }
}

/** Adds the histogram of one layer, truncated to its `most` lowest elements. */
function addUpTo(most: number, own: Uint32Array, all: Float64Array): void {
  let left = most
  for (let k = 0; k < HALF && left > 0; k++) {
    const n = Math.min(left, own[k]!)
    all[k] = all[k]! + n
    left -= n
  }
}

function countHigh(bits: Uint32Array, taken: Mask | undefined, counts: Uint32Array): void {
  if (taken) {
    for (let i = 0; i < bits.length; i++) if (taken[i] === 0) counts[bits[i]! >>> 16]!++
  } else for (let i = 0; i < bits.length; i++) counts[bits[i]! >>> 16]!++
}

/** Low halves of those with one high half. @returns how many are below it */
function countLow(bits: Uint32Array, taken: Mask | undefined, high: number, counts: Uint32Array): number {
  let below = 0
  for (let i = 0; i < bits.length; i++) {
    if (taken !== undefined && taken[i] !== 0) continue
    const h = bits[i]! >>> 16
    if (h < high) below++
    else if (h === high) counts[bits[i]! & 0xffff]!++
  }
  return below
}

function countAround(bits: Uint32Array, taken: Mask | undefined, threshold: number) {
  let less = 0
  let equal = 0
  for (let i = 0; i < bits.length; i++) {
    if (bits[i]! > threshold || (taken !== undefined && taken[i] !== 0)) continue
    if (bits[i]! < threshold) less++
    else equal++
  }
  return { less, equal }
}

/** The same for one layer alone. */
function lowestOf(bits: Uint32Array, taken: Mask | undefined, n: number, counts: Uint32Array) {
  countHigh(bits, taken, counts.fill(0))
  const coarse = reaching(counts, n)
  countLow(bits, taken, coarse.at, counts.fill(0))
  const fine = reaching(counts, n - coarse.below)
  return { threshold: coarse.at * HALF + fine.at, ties: n - coarse.below - fine.below }
}

/** Marks elements below the threshold, and the first `ties` elements equal to it. */
function mark(bits: Uint32Array, taken: Mask | undefined, threshold: number, ties: number, out: Mask): void {
  let left = ties
  for (let i = 0; i < bits.length; i++) {
    if (bits[i]! > threshold || (taken !== undefined && taken[i] !== 0)) continue
    if (bits[i]! < threshold) out[i] = 1
    else if (left > 0) {
      out[i] = 1
      left--
    }
  }
}

/** Vectors in the order of (layer, position). */
export interface Vectors {
  readonly scores: Float64Array
  /** Elements of each. */
  readonly sizes: Uint32Array
  readonly layers: Uint32Array
}

export const vectorsFor = (n: number): Vectors => ({
  scores: new Float64Array(n),
  sizes: new Uint32Array(n),
  layers: new Uint32Array(n),
})

/**
 * Marks (1) vectors in rank order while they fit into `target` elements, and stops at the first that does not. Vectors that
 * exceed their layer's limit are skipped.
 */
export function lowestVectors(
  { scores, sizes, layers }: Vectors,
  target: number,
  rooms: readonly number[],
): Uint8Array {
  const marks = new Uint8Array(scores.length)
  const left = Float64Array.from(rooms)
  let pruned = 0
  for (const v of vectorOrder(scores)) {
    const size = sizes[v]!
    const layer = layers[v]!
    if (size > left[layer]!) continue
    if (pruned + size > target) break
    pruned += size
    left[layer] = left[layer]! - size
    marks[v] = 1
  }
  return marks
}

/** The n best of the first `count` values (1); of equal ones the later, as the earlier have the lower rank. */
export function best(values: ArrayLike<number>, count: number, n: number, out: Uint8Array): void {
  out.fill(n >= count ? 1 : 0, 0, count)
  if (n >= count) return
  for (let round = 0; round < n; round++) {
    let at = -1
    for (let i = 0; i < count; i++) if (out[i] === 0 && (at < 0 || values[i]! >= values[at]!)) at = i
    out[at] = 1
  }
}
