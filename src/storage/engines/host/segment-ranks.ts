/** Segmented ranks: of coordinates within segments of entries in any order. */
import { allocate } from '../../../columns/allocate.ts'
import { borrow, borrowExact, giveBack } from '../../../columns/scratch-buffers.ts'
import { MAX_EXTENT, Ranker } from '../../../columns/segmented-ranks.ts'

/** Positions between neighbouring entries that are near: counters of so many stay in cache. */
const NEAR = 2 ** 15
/** One of so many entries may be far from the one before. */
const FAR = 16
/** Parent positions for an entry, from which on counting them all is waste. */
const SPARE = 8

/**
 * For each entry how many different coordinates under its parent position `at` (`null`: one for all) are smaller, and
 * how many each parent position has; `null` where entries are scattered so much that ordering them is cheaper.
 * O(entries + parents). `grouped`: it is known that `at` never falls.
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

/** `grouped`: never falls. `near`: falls, but most entries are near the one before. */
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

/** `counts[p]`: how many different coordinates parent position p has. */
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

/** The same after a counting sort by parent position. Neighbours mostly have one: their places are counted together. */
function rankNear(at: Int32Array, column: Int32Array, extent: number, counts: Int32Array): Int32Array {
  const n = at.length
  const shared = countRuns(at, counts)
  const rank = borrowExact(n, 'entries')
  // Nobody has a neighbour: every entry is the first of its segment.
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
  // The last entry of a segment was dealt out last.
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

/** Entries at each parent position; whether one has several. */
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
