/**
 * From coordinates to the arrays of an axis tree: order the entries by radix passes, then make one level after
 * the other in a linear sweep (count, scan, scatter; after Chou, Kjolstad and Amarasinghe, PLDI 2020).
 */
import { hasIndices, type StoredAxis } from '../ir/axis.ts'
import { checkCoords } from './check.ts'
import {
  denseVariable,
  findInLevel,
  type LevelInput,
  type Sweep,
  sparseFixed,
  sparseVariable,
} from './levels.ts'
import { lexicographic } from './order.ts'
import {
  allocate,
  elementCount,
  extentOf,
  type Level,
  makeStorage,
  type Storage,
  treesOf,
} from './storage.ts'

export interface BuildInput {
  /** Axes of one buffer, in its order: a child after its parent. */
  readonly axes: readonly StoredAxis[]
  /** By axis name. */
  readonly extents: ReadonlyMap<string, number>
  /** One array for each axis, in the order of `axes`: entry e is at `(coords[0][e], coords[1][e], …)`. */
  readonly coords: readonly Int32Array[]
  /** sparse_fixed axes with a given width; the others get the length of their longest segment. */
  readonly widths?: ReadonlyMap<string, number> | undefined
  /** dense_variable axes with given lengths, one for each parent position; the others are as long as they must. */
  readonly lengths?: ReadonlyMap<string, Int32Array> | undefined
  /** Axes whose level is there already: entries are found in it. No nonunique ones. */
  readonly known?: ReadonlyMap<string, Level> | undefined
}

/**
 * Builds the structure that stores the given coordinates. Entries come in any order; equal coordinates share a
 * position, except on a `nonunique` axis of a buffer with one tree, where each entry has its own. Each tree
 * stores the union of what the entries need of it. O(entries × axes + positions) time.
 *
 * @throws SptError `bind/coordinates`, `bind/coordinate-range`, `bind/extent`, `bind/width`, `bind/lengths`,
 * `bind/axis-order`, `bind/branching`, `bind/absent-coordinate`, `bind/too-large`, `bind/out-of-memory`
 */
export function buildStorage(input: BuildInput): Storage {
  const { axes, coords } = input
  const trees = treesOf(axes)
  const maxima = checkCoords(axes, input.extents, coords)
  const levels = new Map<string, Level>()
  const column = new Map(axes.map((a, k) => [a.name, k]))
  let positions: Int32Array | null = null
  const last: Level[] = []
  for (const tree of trees) {
    const columns = tree.map((a) => column.get(a.name)!)
    const sweep = buildTree(tree, input, columns, maxima, trees.length === 1, levels)
    const level = levels.get(tree[tree.length - 1]!.name)!
    last.push(level)
    elementCount(last)
    if (positions) combine(positions, sweep, level.positions)
    else positions = inEntryOrder(sweep, trees.length > 1)
  }
  return makeStorage(axes, trees, levels, axes.length === 0 ? null : { coords, positions })
}

function buildTree(
  tree: readonly StoredAxis[],
  input: BuildInput,
  columns: readonly number[],
  maxima: readonly number[],
  alone: boolean,
  levels: Map<string, Level>,
): Sweep {
  const keys = columns.map((k) => input.coords[k]!)
  // Dense levels place entries by arithmetic: only stored coordinates need an order.
  const { order, columns: sorted } = tree.some(hasIndices)
    ? lexicographic(
        keys,
        columns.map((k) => maxima[k]!),
      )
    : { order: null, columns: keys }
  const apart = tree.some((a) => hasIndices(a) && !a.unique)
  const fresh = apart && !alone ? tupleStarts(sorted) : null
  let at: Int32Array | null = null
  let parents = 1
  tree.forEach((axis, depth) => {
    const extent = extentOf(input.extents, axis.name)
    const column = sorted[depth]!
    if (axis.kind === 'dense_fixed') {
      at = column
      levels.set(axis.name, { axis, extent, width: null, positions: extent, indptr: null, indices: null })
      parents = extent
      return
    }
    const known = input.known?.get(axis.name)
    if (known) {
      at = findInLevel(known, at, column)
      levels.set(axis.name, known)
      parents = known.positions
      return
    }
    const given: LevelInput = { extent, parents, at, column, fresh }
    const made =
      axis.kind === 'dense_variable'
        ? denseVariable(axis, given, input.lengths?.get(axis.name))
        : axis.kind === 'sparse_fixed'
          ? sparseFixed(axis, given, input.widths?.get(axis.name))
          : sparseVariable(axis as Extract<StoredAxis, { kind: 'sparse_variable' }>, given)
    levels.set(axis.name, made.level)
    at = made.at
    parents = made.level.positions
  })
  return { order, at: at! }
}

/** 1 where a tuple differs from the one before it. */
function tupleStarts(columns: readonly Int32Array[]): Uint8Array {
  const n = columns[0]!.length
  const fresh = new Uint8Array(n)
  if (n > 0) fresh[0] = 1
  for (const c of columns) for (let s = 1; s < n; s++) if (c[s - 1] !== c[s]) fresh[s] = 1
  return fresh
}

/** Positions by entry, in an array of their own; `null` where entry e has position e, unless `whole`. */
function inEntryOrder({ order, at }: Sweep, whole: boolean): Int32Array | null {
  if (!order) {
    if (whole) return at.slice()
    for (let e = 0; e < at.length; e++) if (at[e] !== e) return at.slice()
    return null
  }
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
