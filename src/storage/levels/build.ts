/**
 * From coordinates to the arrays of an axis tree, one level after the other. Unique axes rank coordinates within
 * their segments, entries staying as they came; where that does not do, entries are ordered by radix passes and
 * levels made in linear sweeps (count, scan, scatter; after Chou, Kjolstad and Amarasinghe, PLDI 2020).
 */

import { invariant } from '../../ast/diagnostic.ts'
import { allocate } from '../../columns/allocate.ts'
import { isSorted, lexicographic, type Ordered } from '../../columns/lexicographic-sort.ts'
import { giveBack, reusing } from '../../columns/scratch.ts'
import { hasIndices, isPadded, type StoredAxis } from '../../ir/axis.ts'
import { checkCoords } from '../check.ts'
import { findInLevel } from '../read/find.ts'
import { elementCount, extentOf, type Level, makeStorage, type Storage, treesOf } from '../storage.ts'
import { type Claim, checkClaim } from './claims.ts'
import {
  bitmap,
  denseFixed,
  denseVariable,
  type LevelInput,
  type Made,
  type Sweep,
  sparseFixed,
  sparseVariable,
} from './levels.ts'
import { newPositions } from './segment-runs.ts'
import { rankedLevel } from './segments.ts'

export interface BuildInput {
  /** Axes of one buffer, in its order: a child after its parent. */
  readonly axes: readonly StoredAxis[]
  /** By axis name. */
  readonly extents: ReadonlyMap<string, number>
  /** One array for each axis, in the order of `axes`: entry e is at `(coords[0][e], coords[1][e], …)`. */
  readonly coords: readonly Int32Array[]
  /** sparse_fixed axes with a given width; the others get the length of their longest segment. */
  readonly widths?: ReadonlyMap<string, number> | undefined
  /** What axes that say so are padded with. */
  readonly paddings?: ReadonlyMap<string, number> | undefined
  /** dense_variable axes with given lengths, one for each parent position; the others are as long as they must. */
  readonly lengths?: ReadonlyMap<string, Int32Array> | undefined
  /** Axes whose level is there already: entries are found in it. No nonunique ones. */
  readonly known?: ReadonlyMap<string, Level> | undefined
  /** Whether equal coordinates share a position under `nonunique` axes too. Otherwise each entry has its own. */
  readonly duplicates?: 'share' | undefined
  /** Whether it is known that no two entries have equal coordinates. */
  readonly distinct?: boolean | undefined
  /** Whether it is known that coordinates lie within the extents. */
  readonly inRange?: boolean | undefined
  /** What the text says of every segment of an axis; checked. */
  readonly claims?: readonly { readonly axis: string; readonly claim: Claim }[] | undefined
}

/**
 * Builds the structure that stores the given coordinates. Entries come in any order; equal coordinates share a
 * position, except under a `nonunique` axis of a buffer with one tree, where each entry has its own unless
 * `duplicates` says otherwise. Each tree stores the union of what the entries need of it. O(entries × axes + positions) time.
 *
 * @throws SptError `bind/coordinates`, `bind/coordinate-range`, `bind/extent`, `bind/width`, `bind/lengths`,
 * `bind/axis-order`, `bind/branching`, `bind/absent-coordinate`, `bind/too-large`, `bind/out-of-memory`,
 * `format/claim`
 */
export function buildStorage(input: BuildInput): Storage {
  return reusing(() => build(input))
}

function build(input: BuildInput): Storage {
  const { axes, coords } = input
  const trees = treesOf(axes)
  const maxima = input.inRange
    ? axes.map((a) => Math.max(0, extentOf(input.extents, a.name) - 1))
    : checkCoords(axes, input.extents, coords)
  const levels = new Map<string, Level>()
  const column = new Map(axes.map((a, k) => [a.name, k]))
  let positions: Int32Array | null = null
  const last: Level[] = []
  for (const tree of trees) {
    const columns = tree.map((a) => column.get(a.name)!)
    const sweep = buildTree(
      tree,
      input,
      columns,
      maxima,
      trees.length === 1 && input.duplicates !== 'share',
      levels,
    )
    const level = levels.get(tree[tree.length - 1]!.name)!
    last.push(level)
    elementCount(last)
    if (positions) combine(positions, sweep, level.positions)
    else positions = inEntryOrder(sweep, coords, trees.length > 1)
  }
  return makeStorage(
    axes,
    trees,
    levels,
    axes.length === 0 ? null : { coords, positions, distinct: input.distinct ?? false },
  )
}

function buildTree(
  tree: readonly StoredAxis[],
  input: BuildInput,
  columns: readonly number[],
  maxima: readonly number[],
  keep: boolean,
  levels: Map<string, Level>,
): Sweep {
  let sorted: readonly Int32Array[] = columns.map((k) => input.coords[k]!)
  let order: Int32Array | null = null
  let fresh: readonly (Uint8Array | null)[] = []
  let at: Int32Array | null = null
  let parents = 1
  // Levels without indices place entries by arithmetic, and coordinates of unique axes are ranked in their segments.
  // The first level that can do neither needs an order, by position above it and coordinates from it on.
  const last = tree.findLastIndex(hasIndices)
  let first = -1
  tree.forEach((axis, depth) => {
    const extent = extentOf(input.extents, axis.name)
    const padding = isPadded(axis) ? input.paddings?.get(axis.name) : extent
    invariant(padding !== undefined, `axis ${axis.name} is padded with what is not known`)
    const known = input.known?.get(axis.name)
    if (first < 0 && hasIndices(axis)) {
      const keys = sorted.slice(depth)
      const follow = at ? [at, ...keys] : keys
      if (!known && axis.unique && !isSorted(follow.slice(0, last + 1 - depth + (at ? 1 : 0)))) {
        const given = { extent, parents, at, column: sorted[depth]!, fresh: null, padding }
        const made = rankedLevel(axis, given, input.widths?.get(axis.name))
        if (made) {
          levels.set(axis.name, made.level)
          release(at, input.coords)
          at = made.at
          parents = made.level.positions
          return
        }
      }
      first = depth
      const rest = tree.slice(depth)
      const ordered = inOrder(
        rest,
        at,
        parents,
        keys,
        columns.slice(depth).map((k) => maxima[k]!),
      )
      order = ordered.order
      at = ordered.at
      sorted = [...sorted.slice(0, depth), ...ordered.columns]
      fresh = newPositions(rest, ordered.columns, at, input.widths ?? new Map(), keep)
    } else if (depth === last + 1 && order && at) {
      // What follows is arithmetic again: entries as they came.
      at = unsorted(at, order)
      order = null
      sorted = columns.map((k) => input.coords[k]!)
    }
    const column = sorted[depth]!
    const above = at
    if (known) {
      at = findInLevel(known, at, column)
      levels.set(axis.name, known)
    } else {
      const given = { extent, parents, at, column, fresh: fresh[depth - first] ?? null, padding }
      const made = makeLevel(axis, given, input)
      levels.set(axis.name, made.level)
      at = made.at
    }
    if (above !== at) release(above, input.coords)
    parents = levels.get(axis.name)!.positions
  })
  for (const { axis, claim } of input.claims ?? [])
    if (tree.some((a) => a.name === axis))
      checkClaim(
        tree.map((a) => levels.get(a.name)!),
        axis,
        claim,
      )
  return { order, at: at! }
}

/** Positions that no level is made of any more. */
function release(at: Int32Array | null, coords: readonly Int32Array[]): void {
  if (at && !coords.includes(at)) giveBack(at)
}

function makeLevel(axis: StoredAxis, given: LevelInput, input: BuildInput): Made {
  switch (axis.kind) {
    case 'dense_fixed':
      return denseFixed(axis, given)
    case 'dense_variable':
      return denseVariable(axis, given, input.lengths?.get(axis.name))
    case 'sparse_fixed':
      return sparseFixed(axis, given, input.widths?.get(axis.name))
    case 'sparse_variable':
      return sparseVariable(axis, given)
    case 'bitmap':
      return bitmap(axis, given)
  }
}

/**
 * Entries by position above these levels (`null`: one segment) and by their coordinates down to the last level
 * with indices; by all of them where entries of equal coordinates may be kept apart.
 */
function inOrder(
  tree: readonly StoredAxis[],
  at: Int32Array | null,
  parents: number,
  keys: readonly Int32Array[],
  maxima: readonly number[],
): Ordered & { readonly at: Int32Array | null } {
  const depth = tree.some((a) => hasIndices(a) && !a.unique)
    ? keys.length
    : tree.findLastIndex(hasIndices) + 1
  const above = at ? [at] : []
  const { order, columns } = lexicographic(
    [...above, ...keys.slice(0, depth)],
    [...above.map(() => Math.max(0, parents - 1)), ...maxima.slice(0, depth)],
  )
  // The axes under the last one with indices are placed in input order.
  return { order, at: at && columns[0]!, columns: [...columns.slice(above.length), ...keys.slice(depth)] }
}

/** Positions by entry, in an array of their own; `null` where entry e has position e, unless `whole`. */
function inEntryOrder(
  { order, at }: Sweep,
  coords: readonly Int32Array[],
  whole: boolean,
): Int32Array | null {
  if (order) return unsorted(at, order)
  const own = (): Int32Array => (coords.includes(at) ? at.slice() : at)
  if (whole) return own()
  for (let e = 0; e < at.length; e++) if (at[e] !== e) return own()
  return null
}

function unsorted(at: Int32Array, order: Int32Array): Int32Array {
  const out = allocate(at.length, 'entries')
  for (let s = 0; s < at.length; s++) out[order[s]!] = at[s]!
  return out
}

/** `positions = positions · size + at`, the address over one more tree. */
function combine(positions: Int32Array, { order, at }: Sweep, size: number): void {
  for (let s = 0; s < at.length; s++) {
    const e = order ? order[s]! : s
    positions[e] = positions[e]! * size + at[s]!
  }
}
