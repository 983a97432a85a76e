/** A level with indices from entries in any order: coordinates are ranked within their segments. */

import { allocate } from '../../columns/allocate.ts'
import { MAX_EXTENT, Ranker } from '../../columns/ranks.ts'
import { borrow, giveBack, renewed } from '../../columns/scratch.ts'
import type { SparseFixed, SparseVariable } from '../../ir/axis.ts'
import type { LevelInput, Made } from './levels.ts'
import { checkPadding, fixedWidth, scan } from './levels.ts'

/** Positions between neighbouring entries that are near: counters of so many stay in cache. */
const NEAR = 2 ** 15
/** One of so many entries may be far from the one before. */
const FAR = 16
/** Parent positions for an entry, from which on counting them all is waste. */
const SPARE = 8

/**
 * The level of a unique axis, with positions in input order; `null` where entries are scattered so much that
 * ordering them is cheaper. O(entries + positions).
 */
export function rankedLevel(
  axis: SparseVariable | SparseFixed,
  input: LevelInput,
  width: number | undefined,
): Made | null {
  const { extent, parents, at, column } = input
  const n = column.length
  if (extent > MAX_EXTENT || n === 0 || parents > SPARE * n + 1024) return null
  const shape = at ? shapeOf(at) : 'grouped'
  if (shape === 'scattered') return null
  const counts = allocate(parents + 1, `positions of axis ${axis.parent ?? axis.name}`)
  const rank =
    shape === 'grouped' ? rankGrouped(at, column, extent, counts) : rankNear(at!, column, extent, counts)
  return axis.kind === 'sparse_variable'
    ? compressed(axis, input, rank, counts)
    : padded(axis, input, rank, counts, width)
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

/** `counts[p + 1]`: how many different coordinates parent position p has. */
function rankGrouped(
  at: Int32Array | null,
  column: Int32Array,
  extent: number,
  counts: Int32Array,
): Int32Array {
  const n = column.length
  const rank = renewed(n, 'entries')
  const ranker = new Ranker(extent)
  if (!at) {
    counts[1] = ranker.rank(column, 0, n, rank)
    return rank
  }
  for (let lo = 0; lo < n; ) {
    const p = at[lo]!
    let hi = lo + 1
    while (hi < n && at[hi] === p) hi++
    counts[p + 1] = ranker.rank(column, lo, hi, rank)
    lo = hi
  }
  return rank
}

/** The same after a counting sort by parent position. */
function rankNear(at: Int32Array, column: Int32Array, extent: number, counts: Int32Array): Int32Array {
  const n = at.length
  let shared = false
  for (let e = 0; e < n; e++) if (++counts[at[e]! + 1]! > 1) shared = true
  const rank = renewed(n, 'entries')
  // Nobody has a neighbour: every entry is the first of its segment.
  if (!shared) return rank.fill(0)
  const next = counts.slice()
  for (let p = 1; p < next.length; p++) next[p]! += next[p - 1]!
  const order = borrow(n, 'entries')
  for (let e = 0; e < n; e++) order[next[at[e]!]!++] = e
  const own = borrow(n, 'entries')
  for (let s = 0; s < n; s++) own[s] = column[order[s]!]!
  const ranks = borrow(n, 'entries')
  const ranker = new Ranker(extent)
  for (let p = 0, lo = 0; lo < n; p++) {
    const hi = lo + counts[p + 1]!
    counts[p + 1] = ranker.rank(own, lo, hi, ranks)
    lo = hi
  }
  for (let s = 0; s < n; s++) rank[order[s]!] = ranks[s]!
  for (const a of [order, own, ranks]) giveBack(a)
  return rank
}

/** Writes over `rank`. */
function compressed(
  axis: SparseVariable,
  { extent, at: parent, column }: LevelInput,
  rank: Int32Array,
  indptr: Int32Array,
): Made {
  const n = column.length
  const positions = scan(indptr, axis.name)
  const indices = allocate(positions, `positions of axis ${axis.name}`)
  for (let e = 0; e < n; e++) {
    const q = indptr[parent ? parent[e]! : 0]! + rank[e]!
    indices[q] = column[e]!
    rank[e] = q
  }
  return { level: { axis, extent, width: null, positions, indptr, indices, mask: null }, at: rank }
}

/** The same with as many positions for every parent position. */
function padded(
  axis: SparseFixed,
  { extent, parents, at, column, padding }: LevelInput,
  rank: Int32Array,
  counts: Int32Array,
  given: number | undefined,
): Made {
  const parent = at!
  let widest = 0
  let widestAt = 0
  for (let p = 0; p < parents; p++)
    if (counts[p + 1]! > widest) {
      widest = counts[p + 1]!
      widestAt = p
    }
  const width = fixedWidth(axis, given, widest, widestAt)
  const positions = parents * width
  checkPadding(axis, padding, extent, positions)
  const indices = allocate(positions, `positions of axis ${axis.name}`)
  indices.fill(padding)
  for (let e = 0; e < column.length; e++) {
    const q = parent[e]! * width + rank[e]!
    indices[q] = column[e]!
    rank[e] = q
  }
  return { level: { axis, extent, width, positions, indptr: null, indices, mask: null }, at: rank }
}
