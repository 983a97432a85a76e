/** Counts and ranks of distinct tuples by a table with a slot for each possible tuple, without sorting. */
import { borrow, release } from '../../../columns/scratch-buffers.ts'

/** Slots per entry beyond which sorting is cheaper or needs less memory. */
const MAX_SLOTS_PER_ENTRY = 4

const product = (maxima: readonly number[]): number =>
  maxima.reduce((size, maximum) => size * (maximum + 1), 1)

/** True if a table of tuples up to `maxima` is cheaper than sorting. */
export const fitsTable = (maxima: readonly number[], entries: number): boolean =>
  product(maxima) <= MAX_SLOTS_PER_ENTRY * entries

/** The number of distinct `of` with the same `by`. `maxima`: the maxima of each of `by` and `of`. */
export function countInTable(
  by: readonly Int32Array[],
  of: readonly Int32Array[],
  maxima: readonly number[],
  out: Int32Array,
): Int32Array {
  const width = product(maxima.slice(by.length))
  const { slots, occupied } = occupyTable([...by, ...of], maxima)
  const groups = occupied.length / width
  const counts = borrow(groups, 'entries')
  for (let g = 0, slot = 0; g < groups; g++) {
    let count = 0
    for (const end = slot + width; slot < end; slot++) count += occupied[slot]!
    counts[g] = count
  }
  for (let e = 0; e < out.length; e++) out[e] = counts[Math.floor(slots[e]! / width)]!
  release(slots)
  release(occupied)
  release(counts)
  return out
}

/** The number of smaller distinct `of` with the same `by`. */
export function rankInTable(
  by: readonly Int32Array[],
  of: readonly Int32Array[],
  maxima: readonly number[],
  out: Int32Array,
): Int32Array {
  const width = product(maxima.slice(by.length))
  const { slots, occupied } = occupyTable([...by, ...of], maxima)
  for (let slot = 0; slot < occupied.length; ) {
    let rank = 0
    for (const end = slot + width; slot < end; slot++) {
      const isOccupied = occupied[slot]!
      occupied[slot] = rank
      rank += isOccupied
    }
  }
  for (let e = 0; e < out.length; e++) out[e] = occupied[slots[e]!]!
  release(slots)
  release(occupied)
  return out
}

/** The slot of each entry's tuple, and 1 in each occupied slot. */
function occupyTable(keys: readonly Int32Array[], maxima: readonly number[]) {
  const [first, ...otherKeys] = keys
  const n = first!.length
  const slots = borrow(n, 'entries')
  slots.set(first!)
  otherKeys.forEach((key, k) => {
    const extent = maxima[k + 1]! + 1
    for (let e = 0; e < n; e++) slots[e] = slots[e]! * extent + key[e]!
  })
  const occupied = borrow(product(maxima), 'entries').fill(0)
  for (let e = 0; e < n; e++) occupied[slots[e]!] = 1
  return { slots, occupied }
}
