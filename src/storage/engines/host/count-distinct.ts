/**
 * Counts and ranks of distinct tuples in groups. Sorted entries are swept; contiguous groups are counted in a window,
 * small ranges of tuples in a table; only the remaining cases are sorted first.
 */

import { borrow, release } from '../../../columns/allocate.ts'
import { changes, largest } from '../../../columns/key-columns.ts'
import { isSorted, lexicographic } from '../../../columns/lexicographic-sort.ts'
import { MAX_EXTENT, Ranker, rankSegments } from './segment-ranks.ts'

type Columns = readonly Int32Array[]
type Maxima = readonly (number | null)[]

/** Maximum number of counters of a window: they fit a core's cache. */
const WINDOW = 2 ** 20

/** For ascending entries: how many agree with each in the leading dimensions, in total or before it. */
export function runsOf(leading: Columns, entries: number, kind: 'count' | 'rank'): Int32Array {
  const out = borrow(entries, 'entries')
  const [first] = leading
  const starts = leading.length > 1 ? changes(leading) : null
  for (let lo = 0; lo < entries; ) {
    let hi = lo + 1
    if (!first) hi = entries
    else if (starts) while (hi < entries && starts[hi] === 0) hi++
    else {
      const value = first[lo]!
      while (hi < entries && first[hi] === value) hi++
    }
    if (kind === 'count') out.fill(hi - lo, lo, hi)
    else for (let e = lo; e < hi; e++) out[e] = e - lo
    lo = hi
  }
  return out
}

/** The number of distinct `of` in each group of equal `by`, for `n` entries; `distinct`: none agree in both. */
export function countDistinct(by: Columns, of: Columns, n: number, distinct: boolean): Int32Array {
  const out = borrow(n, 'entries')
  if (n === 0) return out
  if (of.length === 0) return out.fill(1)
  if (distinct) {
    if (by.length === 0) return out.fill(n)
    if (by.length === 1 || !countWindows(by, out)) {
      const { order, columns } = lexicographic(by, by.map(largest))
      sweepRuns(columns, null, order, out)
    }
    return out
  }
  const keys = [...by, ...of]
  const maxima = keys.map(largest)
  if (isSorted(keys)) sweepRuns(by, of, null, out)
  else if (fitsTable(maxima, n)) countInTable(by, of, maxima, out)
  else {
    const { order, columns } = lexicographic(keys, maxima)
    sweepRuns(columns.slice(0, by.length), columns.slice(by.length), order, out)
  }
  return out
}

function sweepRuns(by: Columns, of: Columns | null, order: Int32Array | null, out: Int32Array): void {
  const changed = of ? changes(of) : null
  fillRuns(by, order, out, (s, end) => {
    if (!changed) return end - s
    let count = 1
    for (let k = s + 1; k < end; k++) count += changed[k]!
    return count
  })
}

/** Writes one number to the entries of every run of equal `by`; `value` receives the run's range in sorted order. */
export function fillRuns(
  by: Columns,
  order: Int32Array | null,
  out: Int32Array | Float64Array,
  value: (start: number, end: number) => number,
): void {
  const n = out.length
  const group = by.length > 0 ? changes(by) : new Uint8Array(n)
  for (let s = 0; s < n; ) {
    let end = s + 1
    while (end < n && group[end] === 0) end++
    const x = value(s, end)
    if (order) for (let k = s; k < end; k++) out[order[k]!] = x
    else out.fill(x, s, end)
    s = end
  }
}

/** Counts in counters per value of the first key, if it ascends and the others have small ranges; otherwise false. */
function countWindows(by: Columns, out: Int32Array): boolean {
  const [first, ...otherKeys] = by
  if (!isSorted([first!])) return false
  const sizes = otherKeys.map((c) => largest(c) + 1)
  const size = sizes.reduce((a, b) => a * b, 1)
  if (size > WINDOW) return false
  const n = out.length
  const counts = new Int32Array(size)
  const slot = borrow(n, 'entries')
  for (let lo = 0; lo < n; ) {
    let hi = lo
    for (; hi < n && first![hi] === first![lo]; hi++) {
      let key = 0
      for (let k = 0; k < otherKeys.length; k++) key = key * sizes[k]! + otherKeys[k]![hi]!
      slot[hi] = key
      counts[key]!++
    }
    for (let e = lo; e < hi; e++) out[e] = counts[slot[e]!]!
    for (let e = lo; e < hi; e++) counts[slot[e]!] = 0
    lo = hi
  }
  release(slot)
  return true
}

/**
 * The number of smaller distinct `of` in each group of equal `by`, for `n` entries. `grouped`: `by` is non-decreasing.
 * `maxima`: upper bounds of each of `by` and `of`, or `null`.
 */
export function rankDistinct(
  by: Columns,
  of: Columns,
  n: number,
  grouped: boolean,
  maxima: Maxima,
): Int32Array {
  const keys = [...by, ...of]
  if (n === 0 || of.length === 0) return borrow(n, 'entries').fill(0)
  const inGroups = of.length === 1 && by.length > 0 && !isSorted(keys)
  return (inGroups ? rankInGroups(by, of[0]!, grouped, maxima) : null) ?? rankByOrder(by, of, n)
}

/** Exclusive upper bound: the known one, unless the column is much shorter; then it is measured. */
const extentOf = (column: Int32Array, maximum: number | null): number =>
  (maximum !== null && maximum < column.length ? maximum : largest(column)) + 1

function rankByOrder(by: Columns, of: Columns, n: number): Int32Array {
  const out = borrow(n, 'entries')
  const keys = [...by, ...of]
  const maxima = keys.map(largest)
  if (!isSorted(keys) && fitsTable(maxima, n)) return rankInTable(by, of, maxima, out)
  const { order, columns } = lexicographic(keys, maxima)
  const group = by.length > 0 ? changes(columns.slice(0, by.length)) : new Uint8Array(n)
  const changed = changes(columns.slice(by.length))
  let rank = 0
  for (let s = 0; s < n; s++) {
    rank = group[s] === 1 ? 0 : rank + (s === 0 ? 0 : changed[s]!)
    out[order ? order[s]! : s] = rank
  }
  return out
}

/** Ranks in contiguous or numbered groups; `null` if sorting is cheaper. */
function rankInGroups(by: Columns, of: Int32Array, grouped: boolean, maxima: Maxima): Int32Array | null {
  const [first, ...otherKeys] = by
  const extent = extentOf(of, maxima.at(-1)!)
  if (otherKeys.length === 0)
    return rankSegments(first!, of, extent, extentOf(first!, maxima[0]!), grouped)?.rank ?? null
  if (extent > MAX_EXTENT || !(grouped || isSorted(by))) return null
  const n = of.length
  const out = borrow(n, 'entries')
  const ranker = new Ranker(extent)
  const group = changes(by)
  for (let lo = 0; lo < n; ) {
    let hi = lo + 1
    while (hi < n && group[hi] === 0) hi++
    ranker.rank(of, lo, hi, out)
    lo = hi
  }
  return out
}

// Counts and ranks of distinct tuples by a table with a slot for each possible tuple, without sorting.

/** Slots per entry beyond which sorting is cheaper or needs less memory. */
const MAX_SLOTS_PER_ENTRY = 4

const product = (maxima: readonly number[]): number =>
  maxima.reduce((size, maximum) => size * (maximum + 1), 1)

const fitsTable = (maxima: readonly number[], entries: number): boolean =>
  product(maxima) <= MAX_SLOTS_PER_ENTRY * entries

function countInTable(by: Columns, of: Columns, maxima: readonly number[], out: Int32Array): Int32Array {
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

function rankInTable(by: Columns, of: Columns, maxima: readonly number[], out: Int32Array): Int32Array {
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
function occupyTable(keys: Columns, maxima: readonly number[]) {
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
