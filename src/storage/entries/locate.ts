/**
 * The level function `locate` for whole trees: positions of given coordinates in an existing structure. Both sides are
 * sorted lexicographically and merged, in O(entries + positions) for every combination of axis kinds, orders and
 * duplicates.
 */
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { allocate, gather } from '../../columns/allocate.ts'
import { repetitions } from '../../columns/key-columns.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'
import type { Level, PlacedEntries } from '../../columns/stored-level.ts'
import { isDense, isNonunique, isPadded } from '../../ir/coordinates/axis.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { scatter } from '../engines/host/scatter.ts'
import { checkCoords, paddedPositions, type Storage } from '../storage.ts'
import { type CoordTensor, checkValueArray, type ValueArray } from '../tensor.ts'
import { type Expanded, expandTree } from './stored-coords.ts'

/**
 * Value position of each entry of `coords` (one array per axis of the storage). If a nonunique axis stores equal
 * coordinates repeatedly and `separateDuplicates` is true, the k-th of equal entries gets the k-th position, or the
 * last. Otherwise, all of them get the first position, because the others are padding that repeats a coordinate. By
 * default, duplicates are separate in a storage of one tree. `placed`: by the last axis of a tree, the entries from which
 * it was built, which distinguish its elements from padding.
 * @throws SptError `bind/absent-coordinate`, `bind/coordinates`, `bind/coordinate-range`
 */
export function locate(
  storage: Storage,
  coords: readonly Int32Array[],
  separateDuplicates = storage.trees.length === 1,
  placed: ReadonlyMap<string, PlacedEntries> = new Map(),
): Int32Array {
  const { axes, levels } = storage
  checkCoords(axes, new Map([...levels].map(([name, l]) => [name, l.extent])), coords)
  const n = coords[0]?.length ?? 0
  const out = allocate(n, 'entries')
  const keysOf = (tree: readonly Level[]): Int32Array[] =>
    tree.map((l) => coords[axes.findIndex((a) => a.name === l.axis.name)]!)
  const repeating = storage.trees.filter((t) => t.some((l) => isNonunique(l.axis)))
  // The ordinal of an entry among its equals; if several trees repeat coordinates, repetitions of the last tree vary
  // fastest.
  const ordinals =
    separateDuplicates && repeating.length > 0 ? repetitions(keysOf(storage.trees.flat())) : null
  const positionsByTree = new Map<readonly Level[], Int32Array>()
  for (const tree of storage.trees.toReversed()) {
    const keys = keysOf(tree)
    const isPlain = tree.length === 1 && isDense(tree[0]!.axis)
    const treeOrdinals = repeating.includes(tree) ? ordinals : null
    const treeEntries = (): Expanded => (treeOrdinals ? elementsOfTree(tree, placed) : expandTree(tree))
    const maxima = tree.map((l) => Math.max(0, l.extent - 1))
    const isLast = tree === repeating[0]
    const match = (): Int32Array =>
      matchTuples(treeEntries(), keys, maxima, treeOrdinals, isLast, (e) => rejectAbsent(tree, keys, e))
    positionsByTree.set(tree, isPlain ? keys[0]! : match())
  }
  for (const tree of storage.trees) {
    const size = tree.at(-1)!.positions
    const positions = positionsByTree.get(tree)!
    for (let e = 0; e < n; e++) out[e] = out[e]! * size + positions[e]!
  }
  return out
}

/**
 * The positions of entries on the last of some levels from a root, none of which is nonunique. @throws SptError
 * `bind/absent-coordinate`
 */
export function locateInLevels(levels: readonly Level[], keys: readonly Int32Array[]): Int32Array {
  const find = (depth: number, sought: readonly Int32Array[], reject: (entry: number) => never) =>
    matchTuples(
      expandTree(levels.slice(0, depth)),
      sought.slice(0, depth),
      levels.slice(0, depth).map((l) => Math.max(0, l.extent - 1)),
      null,
      false,
      reject,
    )
  return find(levels.length, keys, (e) => {
    const point = keys.map((k) => k.slice(e, e + 1))
    // The first level without the coordinate.
    let parent = 0
    for (const [d, { axis }] of levels.entries())
      parent = find(d + 1, point, () =>
        failWith(
          'bind/absent-coordinate',
          `axis ${axis.name} does not store the coordinate ${point[d]![0]} at position ${parent} of its parent, which another tensor has there`,
          {
            expected: 'a single structure for each axis',
            hint: 'declare a separate axis for the second tensor, or build the structure from the union of both',
          },
        ),
      )[0]!
    invariant(false, 'a level lacks the coordinate')
  })
}

/**
 * The position of the stored tuple that equals each tuple of `keys`. With `ordinals`, the one with this number among equal
 * tuples; the quotient remains for other trees, unless this is the `last`, whose last tuple serves greater ordinals.
 */
export function matchTuples(
  stored: Expanded,
  keys: readonly Int32Array[],
  maxima: readonly number[],
  ordinals: Int32Array | null,
  last: boolean,
  rejectAbsent: (entry: number) => never,
): Int32Array {
  const storedOrder = lexicographic(stored.coords, maxima)
  const entryOrder = lexicographic(keys, maxima)
  const n = keys[0]!.length
  const m = stored.positions.length
  const out = allocate(n, 'entries')
  const compare = (h: number, s: number): number => {
    for (let k = 0; k < keys.length; k++) {
      const d = storedOrder.columns[k]![h]! - entryOrder.columns[k]![s]!
      if (d !== 0) return d
    }
    return 0
  }
  let h = 0
  let multiplicity = 1
  for (let s = 0; s < n; s++) {
    const e = entryOrder.order ? entryOrder.order[s]! : s
    if (s === 0 || entryOrder.columns.some((c) => c[s - 1] !== c[s])) {
      while (h < m && compare(h, s) < 0) h++
      if (h >= m || compare(h, s) !== 0) rejectAbsent(e)
      multiplicity = 1
      while (ordinals && h + multiplicity < m && compare(h + multiplicity, s) === 0) multiplicity++
    }
    const k = ordinals ? (last ? Math.min(ordinals[e]!, multiplicity - 1) : ordinals[e]! % multiplicity) : 0
    if (ordinals) ordinals[e] = Math.floor(ordinals[e]! / multiplicity)
    out[e] = stored.positions[storedOrder.order ? storedOrder.order[h + k]! : h + k]!
  }
  return out
}

/** Without padding that repeats a coordinate, identified by the entries or, for ready-made arrays, by the order. */
function elementsOfTree(tree: readonly Level[], placed: ReadonlyMap<string, PlacedEntries>): Expanded {
  const stored = expandTree(tree)
  const isElement = elementTest(tree, placed.get(tree.at(-1)!.axis.name))
  if (!isElement) return stored
  const indices = stored.positions.map((_, k) => k).filter((k) => isElement(stored.positions[k]!))
  return {
    positions: gather(stored.positions, indices),
    coords: stored.coords.map((c) => gather(c, indices)),
  }
}

/** A test for elements; `undefined` if all positions are elements, or if they cannot be distinguished. */
function elementTest(
  chain: readonly Level[],
  placed: PlacedEntries | undefined,
): ((position: number) => boolean) | undefined {
  const paddedAxes = chain.map((l) => l.axis).filter(isPadded)
  if (paddedAxes.length === 0) return undefined
  if (placed) {
    const { positions, count } = placed
    // Without explicit positions entry e is at position e, and padding follows.
    if (!positions) return (p) => p < count
    const occupied = new Uint8Array(chain.at(-1)!.positions)
    for (const p of positions) occupied[p] = 1
    return (p) => occupied[p] === 1
  }
  const padding =
    paddedAxes.every((a) => 'ordered' in a && a.ordered && a.unique) && paddedPositions(chain).at(-1)
  return padding ? (p) => padding[p] === 0 : undefined
}

function rejectAbsent(tree: readonly Level[], keys: readonly Int32Array[], e: number): never {
  failWith(
    'bind/absent-coordinate',
    `entry ${e} is at (${keys.map((k) => k[e]).join(', ')}) of (${tree.map((l) => l.axis.name).join(', ')}), which the structure does not store`,
    {
      expected: 'coordinates that the structure stores',
      hint: 'build the structure from the union of the tensors that share it',
    },
  )
}

// Scatter of values into a structure: element e of a tensor goes to the position of its coordinates.

/** The fields of a tensor that `scatterValues` uses: one coordinate array per axis. */
export type Entry = Pick<CoordTensor, 'coords' | 'values' | 'dtype'>

/**
 * The values of a buffer in position order, with `fill` at positions without an entry. Entries at one position are summed
 * in float64, then rounded, or combined by `or`. If the storage was built from another tensor, this one may have fewer
 * coordinates, but no additional ones. `placed`: the positions of the entries, if known. `locationOf` describes an entry
 * in messages.
 *
 * @throws SptError `bind/absent-coordinate`, `bind/coordinates`, `bind/coordinate-range`, `bind/value-range`,
 * `bind/value-type`, `bind/values-length`, `bind/out-of-memory`
 */
export function scatterValues(
  storage: Storage,
  tensor: Entry,
  dtype: Dtype,
  fill: number,
  placed?: Pick<PlacedEntries, 'positions' | 'distinct'>,
  locationOf?: (entry: number) => string,
): ValueArray {
  if (tensor.values) checkValueArray(tensor.values, tensor.dtype)
  const positions = placed ? placed.positions : locate(storage, tensor.coords)
  const n = tensor.coords[0]?.length ?? tensor.values?.length ?? 0
  if (tensor.values && tensor.values.length !== n)
    failWith('bind/values-length', `${tensor.values.length} values for ${n} entries`, {
      expected: `${n} values`,
      hint: 'give a value for every entry, or none for a pattern',
    })
  return scatter(storage.size, positions, n, tensor, dtype, fill, placed?.distinct ?? false, locationOf)
}
