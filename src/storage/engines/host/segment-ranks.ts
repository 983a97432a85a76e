/** Segmented ranks: ranks of coordinates within segments, for entries in any order. */
import { allocate } from '../../../columns/allocate.ts'
import { borrow, borrowExact, giveBack } from '../../../columns/scratch-buffers.ts'
import { MAX_EXTENT, Ranker } from '../../../columns/segmented-ranks.ts'

/** Largest distance in positions between consecutive entries that count as near: this many counters fit the cache. */
const NEAR = 2 ** 15
/** At most 1 of this many entries may be far from its predecessor. */
const FAR = 16
/** Parent positions per entry beyond which counting all of them is wasteful. */
const SPARE = 8

/**
 * For each entry the number of smaller distinct coordinates under its parent position `at` (`null`: a single one), and
 * the number of distinct coordinates per parent position. `null` if entries are so scattered that sorting is cheaper.
 * O(entries + parents). `grouped`: `at` is known to be non-decreasing.
 */
export function rankSegments(
  at: Int32Array | null,
  column: Int32Array,
  extent: number,
  parents: number,
  grouped = at === null,
): { readonly rank: Int32Array; readonly counts: Int32Array } | null {
  const n = column.length
  if (extent > MAX_EXTENT || n === 0 || parents > SPARE * n + 1024) return null
  const shape = grouped ? 'grouped' : shapeOf(at!)
  if (shape === 'scattered') return null
  const counts = allocate(parents, 'segments')
  const rank =
    shape === 'grouped' ? rankGrouped(at, column, extent, counts) : rankNear(at!, column, extent, counts)
  return { rank, counts }
}

/** `grouped`: non-decreasing. `near`: decreasing somewhere, but most entries are near their predecessor. */
function shapeOf(at: Int32Array): 'grouped' | 'near' | 'scattered' {
  let falls = false
  let far = 0
  for (let e = 1; e < at.length; e++) {
    const d = at[e]! - at[e - 1]!
    if (d < 0) falls = true
    if (d > NEAR || d < -NEAR) far++
  }
  if (!falls) return 'grouped'
  return far * FAR > at.length ? 'scattered' : 'near'
}

/** Ranks of grouped entries; `counts[p]` receives the number of distinct coordinates of parent position p. */
function rankGrouped(
  at: Int32Array | null,
  column: Int32Array,
  extent: number,
  counts: Int32Array,
): Int32Array {
  const n = column.length
  const rank = borrowExact(n, 'entries')
  const ranker = new Ranker(extent)
  if (!at) {
    counts[0] = ranker.rank(column, 0, n, rank)
    return rank
  }
  for (let lo = 0; lo < n; ) {
    const p = at[lo]!
    let hi = lo + 1
    while (hi < n && at[hi] === p) hi++
    counts[p] = ranker.rank(column, lo, hi, rank)
    lo = hi
  }
  return rank
}

/**
 * As `rankGrouped`, after a counting sort by parent position. Consecutive entries mostly share a parent and are counted
 * together.
 */
function rankNear(at: Int32Array, column: Int32Array, extent: number, counts: Int32Array): Int32Array {
  const n = at.length
  const shared = countRuns(at, counts)
  const rank = borrowExact(n, 'entries')
  // All parents differ: every entry is the first of its segment.
  if (!shared) return rank.fill(0)
  const next = allocate(counts.length, 'segments')
  for (let p = 1; p < next.length; p++) next[p] = next[p - 1]! + counts[p - 1]!
  const own = borrow(n, 'entries')
  for (let e = 0; e < n; ) {
    const p = at[e]!
    let s = next[p]!
    do own[s++] = column[e++]!
    while (e < n && at[e] === p)
    next[p] = s
  }
  const ranks = borrow(n, 'entries')
  const ranker = new Ranker(extent)
  for (let p = 0, lo = 0; lo < n; p++) {
    const hi = lo + counts[p]!
    counts[p] = ranker.rank(own, lo, hi, ranks)
    lo = hi
  }
  // After the counting sort, `next[p]` is the end of segment p.
  for (let e = n - 1; e >= 0; ) {
    const p = at[e]!
    let s = next[p]!
    do rank[e--] = ranks[--s]!
    while (e >= 0 && at[e] === p)
    next[p] = s
  }
  for (const a of [next, own, ranks]) giveBack(a)
  return rank
}

/** Counts the entries at each parent position; returns true if one has several. */
function countRuns(at: Int32Array, counts: Int32Array): boolean {
  let shared = false
  for (let lo = 0; lo < at.length; ) {
    const p = at[lo]!
    let hi = lo + 1
    while (hi < at.length && at[hi] === p) hi++
    counts[p]! += hi - lo
    if (counts[p]! > 1) shared = true
    lo = hi
  }
  return shared
}
