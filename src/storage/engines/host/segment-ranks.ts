/** Segmented ranks: ranks of coordinates within segments, for entries in any order. */
import { allocate, borrow, borrowExact, gatherInto, release } from '../../../columns/allocate.ts'
import { bitCount } from '../../../ir/values/packed-fields.ts'
import { countRuns, scatterRuns } from './scatter.ts'

/** Consecutive entries within this many positions are near each other: the counters between fit the cache. */
const NEAR_DISTANCE = 2 ** 15
/** At most 1 of this many entries may be far from its predecessor. */
const FAR_FRACTION = 16
/** Parent positions per entry beyond which counting all of them is wasteful. */
const MAX_PARENTS_PER_ENTRY = 8

/**
 * For each entry, the number of smaller distinct coordinates under its parent position (`parentColumn`; `null`: a
 * single parent), and the number of distinct coordinates per parent position. `null` if entries are so scattered that
 * sorting is cheaper. O(entries + parents). `grouped`: `parentColumn` is known to be non-decreasing.
 */
export function rankSegments(
  parentColumn: Int32Array | null,
  column: Int32Array,
  extent: number,
  parents: number,
  grouped = parentColumn === null,
): { readonly rank: Int32Array; readonly counts: Int32Array } | null {
  const n = column.length
  if (extent > MAX_EXTENT || n === 0 || parents > MAX_PARENTS_PER_ENTRY * n + 1024) return null
  const order = grouped ? 'grouped' : classifyOrder(parentColumn!)
  if (order === 'scattered') return null
  const counts = allocate(parents, 'segments')
  const rank =
    order === 'grouped'
      ? rankGrouped(parentColumn, column, extent, counts)
      : rankNear(parentColumn!, column, extent, counts)
  return { rank, counts }
}

/** `grouped`: non-decreasing. `near`: decreasing somewhere, but most entries are near their predecessor. */
function classifyOrder(parentColumn: Int32Array): 'grouped' | 'near' | 'scattered' {
  let descends = false
  let far = 0
  for (let e = 1; e < parentColumn.length; e++) {
    const distance = parentColumn[e]! - parentColumn[e - 1]!
    if (distance < 0) descends = true
    if (distance > NEAR_DISTANCE || distance < -NEAR_DISTANCE) far++
  }
  if (!descends) return 'grouped'
  return far * FAR_FRACTION > parentColumn.length ? 'scattered' : 'near'
}

/** `counts[p]` receives the number of distinct coordinates of parent position p. */
function rankGrouped(
  parentColumn: Int32Array | null,
  column: Int32Array,
  extent: number,
  counts: Int32Array,
): Int32Array {
  const n = column.length
  const rank = borrowExact(n, 'entries')
  const ranker = new Ranker(extent)
  if (!parentColumn) {
    counts[0] = ranker.rank(column, 0, n, rank)
    return rank
  }
  for (let lo = 0; lo < n; ) {
    const p = parentColumn[lo]!
    let hi = lo + 1
    while (hi < n && parentColumn[hi] === p) hi++
    counts[p] = ranker.rank(column, lo, hi, rank)
    lo = hi
  }
  return rank
}

/** As `rankGrouped`, after a counting sort by parent; consecutive entries mostly share a parent. */
function rankNear(
  parentColumn: Int32Array,
  column: Int32Array,
  extent: number,
  counts: Int32Array,
): Int32Array {
  const n = parentColumn.length
  countRuns(parentColumn, counts)
  const rank = borrowExact(n, 'entries')
  // All parents differ: every entry is the first of its segment.
  if (!counts.some((count) => count > 1)) return rank.fill(0)
  const next = allocate(counts.length, 'segments')
  for (let p = 1; p < next.length; p++) next[p] = next[p - 1]! + counts[p - 1]!
  const order = borrowExact(n, 'entries')
  scatterRuns(parentColumn, next, order)
  const grouped = gatherInto(borrowExact(n, 'entries'), column, order)
  const ranks = borrow(n, 'entries')
  const ranker = new Ranker(extent)
  for (let p = 0, lo = 0; lo < n; p++) {
    const hi = lo + counts[p]!
    counts[p] = ranker.rank(grouped, lo, hi, ranks)
    lo = hi
  }
  for (let s = 0; s < n; s++) rank[order[s]!] = ranks[s]!
  for (const a of [next, order, grouped, ranks]) release(a)
  return rank
}

// Dense ranking of runs without sorting entries: an ascending run is swept; for others, a bitmap (with a summary bit for each of its words)
// counts the smaller ones.

/** Runs of at most this length use insertion sort. */
const MAX_INSERTION = 16
/** Summary words scanned per entry beyond which sorting is cheaper. */
const MAX_SUMMARY_WORDS = 4
/** Bitmaps of larger extents would not fit the cache. */
export const MAX_EXTENT = 2 ** 26

/** Ranks runs of coordinates in `[0, extent)`, with `extent <= MAX_EXTENT`. */
export class Ranker {
  private readonly extent: number
  private mask: Int32Array = new Int32Array(0)
  private summary: Int32Array = new Int32Array(0)
  private wordOffsets: Int32Array = new Int32Array(0)
  private readonly sorted = new Int32Array(MAX_INSERTION)

  constructor(extent: number) {
    this.extent = extent
  }

  /** Writes the ranks of `of[lo … hi - 1]` to the same indices of `out`; returns the number of distinct coordinates. */
  rank(coordinates: Int32Array, lo: number, hi: number, out: Int32Array): number {
    let last = coordinates[lo]!
    let rank = 0
    let e = lo
    for (; e < hi; e++) {
      const c = coordinates[e]!
      if (c < last) break
      if (c !== last) rank++
      last = c
      out[e] = rank
    }
    if (e === hi) return hi > lo ? rank + 1 : 0
    if (hi - lo <= MAX_INSERTION) return this.rankByInsertion(coordinates, lo, hi, out)
    let min = last
    let max = last
    for (let k = lo; k < hi; k++) {
      const c = coordinates[k]!
      if (c < min) min = c
      else if (c > max) max = c
    }
    if ((max - min) >>> 10 > MAX_SUMMARY_WORDS * (hi - lo)) return rankBySorting(coordinates, lo, hi, out)
    return this.rankByBitmap(coordinates, lo, hi, out, min, max)
  }

  private rankByInsertion(coordinates: Int32Array, lo: number, hi: number, out: Int32Array): number {
    const { sorted } = this
    let n = 0
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      let k = n
      while (k > 0 && sorted[k - 1]! > c) k--
      if (k > 0 && sorted[k - 1] === c) continue
      for (let m = n; m > k; m--) sorted[m] = sorted[m - 1]!
      sorted[k] = c
      n++
    }
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      let k = 0
      while (sorted[k] !== c) k++
      out[e] = k
    }
    return n
  }

  private rankByBitmap(
    coordinates: Int32Array,
    lo: number,
    hi: number,
    out: Int32Array,
    min: number,
    max: number,
  ): number {
    // Few coordinates below a large extent may need no bitmap.
    if (this.mask.length === 0) {
      const words = (this.extent >>> 5) + 1
      this.mask = allocate(words, 'mask words')
      this.wordOffsets = allocate(words, 'mask words')
      this.summary = allocate((words >>> 5) + 1, 'mask words')
    }
    const { mask, summary, wordOffsets } = this
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      const w = c >>> 5
      mask[w]! |= 1 << (c & 31)
      summary[w >>> 5]! |= 1 << (w & 31)
    }
    let total = 0
    for (let t = min >>> 10; t <= max >>> 10; t++) {
      for (let word = summary[t]!; word !== 0; word &= word - 1) {
        const w = (t << 5) + 31 - Math.clz32(word & -word)
        wordOffsets[w] = total
        total += bitCount(mask[w]!)
      }
      summary[t] = 0
    }
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      const w = c >>> 5
      out[e] = wordOffsets[w]! + bitCount(mask[w]! & ((1 << (c & 31)) - 1))
    }
    for (let e = lo; e < hi; e++) mask[coordinates[e]! >>> 5] = 0
    return total
  }
}

function rankBySorting(coordinates: Int32Array, lo: number, hi: number, out: Int32Array): number {
  const sorted = coordinates.slice(lo, hi).sort()
  let n = 1
  for (let k = 1; k < sorted.length; k++) if (sorted[k] !== sorted[n - 1]) sorted[n++] = sorted[k]!
  for (let e = lo; e < hi; e++) {
    const c = coordinates[e]!
    let a = 0
    let b = n - 1
    while (a < b) {
      const middle = (a + b) >>> 1
      if (sorted[middle]! < c) a = middle + 1
      else b = middle
    }
    out[e] = a
  }
  return n
}
