/** Segmented ranks: ranks of coordinates within segments, for entries in any order. */
import { allocate } from '../../../columns/allocate.ts'
import { borrow, borrowExact, release } from '../../../columns/scratch-buffers.ts'
import { MAX_EXTENT, Ranker } from '../../../columns/segmented-ranks.ts'

/**
 * Maximum distance, in positions, between consecutive entries that are near each other: this many counters
 * fit the cache.
 */
const NEAR_DISTANCE = 2 ** 15
/** At most 1 of this many entries may be far from its predecessor. */
const FAR_FRACTION = 16
/** Parent positions per entry beyond which counting all of them is wasteful. */
const MAX_PARENTS_PER_ENTRY = 8

/**
 * For each entry, the number of smaller distinct coordinates under its parent position (`parentColumn`;
 * `null`: a single parent), and the number of distinct coordinates per parent position. `null` if entries are
 * so scattered that sorting is cheaper. O(entries + parents). `grouped`: `parentColumn` is known to be
 * non-decreasing.
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

/** Ranks of grouped entries; `counts[p]` receives the number of distinct coordinates of parent position p. */
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

/**
 * As `rankGrouped`, after a counting sort by parent position. Consecutive entries mostly share a parent and are counted
 * together.
 */
function rankNear(
  parentColumn: Int32Array,
  column: Int32Array,
  extent: number,
  counts: Int32Array,
): Int32Array {
  const n = parentColumn.length
  const hasRepeats = countRuns(parentColumn, counts)
  const rank = borrowExact(n, 'entries')
  // All parents differ: every entry is the first of its segment.
  if (!hasRepeats) return rank.fill(0)
  const next = allocate(counts.length, 'segments')
  for (let p = 1; p < next.length; p++) next[p] = next[p - 1]! + counts[p - 1]!
  const grouped = borrow(n, 'entries')
  for (let e = 0; e < n; ) {
    const p = parentColumn[e]!
    let s = next[p]!
    do grouped[s++] = column[e++]!
    while (e < n && parentColumn[e] === p)
    next[p] = s
  }
  const ranks = borrow(n, 'entries')
  const ranker = new Ranker(extent)
  for (let p = 0, lo = 0; lo < n; p++) {
    const hi = lo + counts[p]!
    counts[p] = ranker.rank(grouped, lo, hi, ranks)
    lo = hi
  }
  // After the counting sort, `next[p]` is the end of segment p.
  for (let e = n - 1; e >= 0; ) {
    const p = parentColumn[e]!
    let s = next[p]!
    do rank[e--] = ranks[--s]!
    while (e >= 0 && parentColumn[e] === p)
    next[p] = s
  }
  for (const a of [next, grouped, ranks]) release(a)
  return rank
}

/** Counts the entries at each parent position; returns true if one has several. */
function countRuns(parentColumn: Int32Array, counts: Int32Array): boolean {
  let hasRepeats = false
  for (let lo = 0; lo < parentColumn.length; ) {
    const p = parentColumn[lo]!
    let hi = lo + 1
    while (hi < parentColumn.length && parentColumn[hi] === p) hi++
    counts[p]! += hi - lo
    if (counts[p]! > 1) hasRepeats = true
    lo = hi
  }
  return hasRepeats
}
