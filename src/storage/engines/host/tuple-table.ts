/** Counts and ranks of distinct tuples by a table with a slot for each possible tuple, without sorting. */
import { borrow, giveBack } from '../../../columns/scratch-buffers.ts'

/** Slots per entry beyond which sorting is cheaper or needs less memory. */
const PLACES = 4

const product = (most: readonly number[]): number => most.reduce((size, m) => size * (m + 1), 1)

/** True if a table of tuples up to `most` is cheaper than sorting. */
export const fitsTable = (most: readonly number[], entries: number): boolean =>
  product(most) <= PLACES * entries

/** The number of distinct `of` with the same `by`. `most`: the maxima of each of `by` and `of`. */
export function countInTable(
  by: readonly Int32Array[],
  of: readonly Int32Array[],
  most: readonly number[],
  out: Int32Array,
): Int32Array {
  const width = product(most.slice(by.length))
  const { place, held } = tableOf([...by, ...of], most)
  const groups = held.length / width
  const counts = borrow(groups, 'entries')
  for (let g = 0, at = 0; g < groups; g++) {
    let count = 0
    for (const end = at + width; at < end; at++) count += held[at]!
    counts[g] = count
  }
  for (let e = 0; e < out.length; e++) out[e] = counts[Math.floor(place[e]! / width)]!
  giveBack(place)
  giveBack(held)
  giveBack(counts)
  return out
}

/** The number of smaller distinct `of` with the same `by`. */
export function rankInTable(
  by: readonly Int32Array[],
  of: readonly Int32Array[],
  most: readonly number[],
  out: Int32Array,
): Int32Array {
  const width = product(most.slice(by.length))
  const { place, held } = tableOf([...by, ...of], most)
  for (let at = 0; at < held.length; ) {
    let rank = 0
    for (const end = at + width; at < end; at++) {
      const is = held[at]!
      held[at] = rank
      rank += is
    }
  }
  for (let e = 0; e < out.length; e++) out[e] = held[place[e]!]!
  giveBack(place)
  giveBack(held)
  return out
}

/** The slot of each entry's tuple, and 1 in each occupied slot. */
function tableOf(keys: readonly Int32Array[], most: readonly number[]) {
  const [first, ...others] = keys
  const n = first!.length
  const place = borrow(n, 'entries')
  place.set(first!)
  others.forEach((key, k) => {
    const extent = most[k + 1]! + 1
    for (let e = 0; e < n; e++) place[e] = place[e]! * extent + key[e]!
  })
  const held = borrow(product(most), 'entries').fill(0)
  for (let e = 0; e < n; e++) held[place[e]!] = 1
  return { place, held }
}
