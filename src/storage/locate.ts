/**
 * The level function `locate` for whole trees: positions of given coordinates in an existing structure. Both sides are
 * sorted lexicographically and merged, in O(entries + positions) for every combination of axis kinds, orders and
 * duplicates.
 */

import { fail } from '../ast/diagnostic.ts'
import { allocate, gather } from '../columns/allocate.ts'
import { lexicographic } from '../columns/lexicographic-sort.ts'
import { repetitions } from '../columns/repetitions.ts'
import { isDense, isNonunique, isPadded } from '../ir/axis.ts'
import { checkCoords } from './coordinate-checks.ts'
import { chainOf, paddedPositions } from './padding-positions.ts'
import type { Level, Storage } from './storage.ts'
import { type Expanded, expandTree } from './stored-coords.ts'

/**
 * Value position of each entry of `coords` (one array per axis of the storage). If a nonunique axis stores equal
 * coordinates repeatedly and entries stay `apart`, the k-th of equal entries gets the k-th position, or the last;
 * otherwise all get the first, because others are padding that repeats a coordinate. By default entries stay apart in a
 * storage of one tree. `others`: storages that may identify padding in shared trees. @throws SptError
 * `bind/absent-coordinate`, `bind/coordinates`, `bind/coordinate-range`
 */
export function locate(
  storage: Storage,
  coords: readonly Int32Array[],
  apart = storage.trees.length === 1,
  others: Iterable<Storage> = [],
): Int32Array {
  const { axes, levels } = storage
  checkCoords(axes, new Map([...levels].map(([name, l]) => [name, l.extent])), coords)
  const n = coords[0]?.length ?? 0
  const out = allocate(n, 'entries')
  const keysOf = (tree: readonly string[]): Int32Array[] =>
    tree.map((name) => coords[axes.findIndex((a) => a.name === name)]!)
  const repeating = storage.trees.filter((t) => t.some((name) => isNonunique(levels.get(name)!.axis)))
  // The ordinal of an entry among its equals; if several trees repeat coordinates, repetitions of the last tree vary
  // fastest.
  const which = apart && repeating.length > 0 ? repetitions(keysOf(storage.trees.flat())) : null
  const elements = (tree: readonly string[]): Expanded => elementsOf(builtOver(storage, tree, others), tree)
  const found = new Map<readonly string[], Int32Array>()
  for (const tree of storage.trees.toReversed()) {
    const keys = keysOf(tree)
    const isPlain = tree.length === 1 && isDense(levels.get(tree[0]!)!.axis)
    const own = repeating.includes(tree) ? which : null
    const stored = (): Expanded => (own ? elements(tree) : expandTree(storage, tree))
    found.set(tree, isPlain ? keys[0]! : merge(storage, tree, keys, stored(), own, tree === repeating[0]))
  }
  for (const tree of storage.trees) {
    const size = levels.get(tree[tree.length - 1]!)!.positions
    const at = found.get(tree)!
    for (let e = 0; e < n; e++) out[e] = out[e]! * size + at[e]!
  }
  return out
}

/** The storage that was built from the entries of this tree alone, with the same levels; otherwise the given one. */
function builtOver(storage: Storage, tree: readonly string[], others: Iterable<Storage>): Storage {
  if (storage.trees.length === 1 && storage.entries) return storage
  for (const s of others) {
    const same = s.entries && s.axes.length === tree.length && s.trees.length === 1
    if (same && tree.every((a, k) => s.axes[k]!.name === a)) return s
  }
  return storage
}

/**
 * `which`: each entry takes this one of the positions of its coordinates; the quotient is left for other trees, unless
 * this is the `last`.
 */
function merge(
  storage: Storage,
  tree: readonly string[],
  keys: readonly Int32Array[],
  stored: Expanded,
  which: Int32Array | null,
  last: boolean,
): Int32Array {
  const maxima = tree.map((name) => Math.max(0, storage.levels.get(name)!.extent - 1))
  const have = lexicographic(stored.coords, maxima)
  const want = lexicographic(keys, maxima)
  const n = keys[0]!.length
  const m = stored.positions.length
  const out = allocate(n, 'entries')
  const compare = (h: number, s: number): number => {
    for (let k = 0; k < keys.length; k++) {
      const d = have.columns[k]![h]! - want.columns[k]![s]!
      if (d !== 0) return d
    }
    return 0
  }
  let at = 0
  let times = 1
  for (let s = 0; s < n; s++) {
    const e = want.order ? want.order[s]! : s
    if (s === 0 || want.columns.some((c) => c[s - 1] !== c[s])) {
      while (at < m && compare(at, s) < 0) at++
      if (at >= m || compare(at, s) !== 0) absent(tree, keys, e)
      times = 1
      while (which && at + times < m && compare(at + times, s) === 0) times++
    }
    const k = which ? (last ? Math.min(which[e]!, times - 1) : which[e]! % times) : 0
    if (which) which[e] = Math.floor(which[e]! / times)
    out[e] = stored.positions[have.order ? have.order[at + k]! : at + k]!
  }
  return out
}

/**
 * The positions of a tree without padding that repeats an element's coordinate. Padding is identified by the entries
 * that the storage was built from or, for ready-made arrays, by the order of coordinates.
 */
function elementsOf(storage: Storage, tree: readonly string[]): Expanded {
  const stored = expandTree(storage, tree)
  const isElement = elementsBy(storage, chainOf(storage, tree))
  if (!isElement) return stored
  const kept = stored.positions.map((_, k) => k).filter((k) => isElement(stored.positions[k]!))
  return { positions: gather(stored.positions, kept), coords: stored.coords.map((c) => gather(c, kept)) }
}

/** A test for elements; `undefined` if all positions are elements, or if they cannot be distinguished. */
function elementsBy(
  { entries, size, trees }: Storage,
  chain: readonly Level[],
): ((position: number) => boolean) | undefined {
  const own = chain.map((l) => l.axis).filter(isPadded)
  if (own.length === 0) return undefined
  if (entries && trees.length === 1) {
    // Without explicit positions entry e is at position e, and padding follows.
    if (!entries.positions) return (p) => p < entries.count
    const held = new Uint8Array(size)
    for (const p of entries.positions) held[p] = 1
    return (p) => held[p] === 1
  }
  const padding = own.every((a) => 'ordered' in a && a.ordered && a.unique) && paddedPositions(chain).at(-1)
  return padding ? (p) => padding[p] === 0 : undefined
}

function absent(tree: readonly string[], keys: readonly Int32Array[], e: number): never {
  fail({
    code: 'bind/absent-coordinate',
    message: `entry ${e} is at (${keys.map((k) => k[e]).join(', ')}) of (${tree.join(', ')}), which the structure does not store`,
    expected: 'coordinates that the structure stores',
    hint: 'build the structure from the union of the tensors that share it',
  })
}
