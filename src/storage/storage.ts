/**
 * The arrays of an axis tree. A buffer lists axes; each root starts a tree, which is a chain of levels; a level has one
 * position for each coordinate it stores (`ir/coordinates/axis.ts` defines the arrays). An element of the buffer is one position of
 * the last level of every tree, with the address
 *
 * ((p_1 · size_2 + p_2) · size_3 + p_3) …
 *
 * with the trees in order of their roots' first appearance. Lowering computes the same address
 * (`lower/positions/level-positions.ts`).
 */

import { fail } from '../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../ast/nodes/axis-kinds.ts'
import { MAX_POSITIONS, rejectCount } from '../columns/allocate.ts'
import type { Level, PlacedEntries } from '../columns/stored-level.ts'
import { keepsDuplicates, parentOf, type StoredAxis } from '../ir/coordinates/axis.ts'
import type { StoredTensor } from './tensor.ts'

/** The arrays of levels by axis, including axes without arrays: the keys are the axes of the tensor. */
export const arraysOf = (levels: ReadonlyMap<string, Level>): StoredTensor['arrays'] =>
  Object.fromEntries(
    [...levels].map(([name, level]) => [
      name,
      Object.fromEntries(LEVEL_ARRAYS.flatMap((a) => (level[a] ? [[a, level[a]]] : []))),
    ]),
  )

export interface Entries extends PlacedEntries {
  /** One column for each axis. */
  readonly coords: readonly Int32Array[]
}

export interface Storage {
  /** In the buffer's order; a child after its parent. */
  readonly axes: readonly StoredAxis[]
  readonly levels: ReadonlyMap<string, Level>
  /** One chain of axis names for each tree. */
  readonly trees: readonly (readonly string[])[]
  /** Elements of a buffer over all axes: the product of the trees' positions. @throws SptError `bind/too-large` */
  readonly size: number
  /** `null` if the arrays were bound ready-made. */
  readonly entries: Entries | null
}

/**
 * Groups axes into chains, in order of the roots' first appearance.
 * @throws SptError `bind/axis-order` (a child before its parent), `bind/branching` (two children of one axis).
 */
export function treesOf(axes: readonly StoredAxis[]): readonly (readonly StoredAxis[])[] {
  const trees: StoredAxis[][] = []
  const treeOf = new Map<string, StoredAxis[]>()
  for (const axis of axes) {
    const parent = parentOf(axis)
    if (treeOf.has(axis.name))
      fail({
        code: 'bind/axis-order',
        message: `axis ${axis.name} occurs twice in one buffer`,
        expected: 'each axis once',
        hint: 'declare a second axis with the same extent',
      })
    if (parent === null) {
      const tree = [axis]
      trees.push(tree)
      treeOf.set(axis.name, tree)
      continue
    }
    const tree = treeOf.get(parent)
    if (!tree)
      fail({
        code: 'bind/axis-order',
        message: `axis ${axis.name} comes before its parent ${parent}`,
        expected: `${parent} among the axes before ${axis.name}`,
        hint: `write [${parent}, ${axis.name}]`,
      })
    const last = tree[tree.length - 1]!
    if (last.name !== parent)
      fail({
        code: 'bind/branching',
        message: `axes ${last.name} and ${axis.name} of one buffer are both under ${parent}`,
        expected: 'at most one child of an axis in a buffer',
        hint: `make ${axis.name} a child of ${last.name}, or use two buffers`,
      })
    tree.push(axis)
    treeOf.set(axis.name, tree)
  }
  return trees
}

/** Assembles a storage from its levels. @throws SptError `bind/too-large` */
export function makeStorage(
  axes: readonly StoredAxis[],
  trees: readonly (readonly StoredAxis[])[],
  levels: ReadonlyMap<string, Level>,
  entries: Entries | null,
): Storage {
  return { ...makeLazyStorage(axes, trees, levels), entries }
}

/** A storage that may never be allocated as a whole, such as temporaries in registers: its size is computed on use. */
export function makeLazyStorage(
  axes: readonly StoredAxis[],
  trees: readonly (readonly StoredAxis[])[],
  levels: ReadonlyMap<string, Level>,
): Storage {
  const last = trees.map((t) => levels.get(t[t.length - 1]!.name)!)
  return {
    axes,
    levels,
    trees: trees.map((t) => t.map((a) => a.name)),
    get size() {
      return elementCount(last)
    },
    entries: null,
  }
}

/** The product of the levels' positions. @throws SptError `bind/too-large` */
function elementCount(last: readonly Level[]): number {
  let size = 1
  for (const l of last) size *= l.positions
  if (size > MAX_POSITIONS)
    rejectCount(size, `elements of a buffer over ${last.map((l) => l.axis.name).join(' × ')}`)
  return size
}

/** The part of a storage that a buffer over fewer axes uses: a prefix of each of some trees. */
export function restrict(storage: Storage, axes: readonly string[]): Storage {
  if (axes.length === storage.axes.length && axes.every((a, k) => a === storage.axes[k]!.name)) return storage
  const selectedAxes = axes.map((name) => {
    const level = storage.levels.get(name)
    if (!level)
      fail({
        code: 'bind/unknown-axis',
        message: `no axis ${name} in this storage`,
        lookup: { name, candidates: [...storage.levels.keys()] },
        expected: `some of ${[...storage.levels.keys()].join(', ')}`,
        hint: 'bind the structure of the axis first',
      })
    return level.axis
  })
  return makeStorage(selectedAxes, treesOf(selectedAxes), storage.levels, null)
}

/**
 * True if elements with equal coordinates of a tensor over these declared axes are separate elements, which
 * only a single tree permits.
 */
export const separatesDuplicates = (declared: readonly StoredAxis[]): boolean =>
  declared.some(keepsDuplicates) && treesOf(declared).length === 1

/** An extent, validated. @throws SptError `bind/extent` */
export function extentOf(extents: ReadonlyMap<string, number>, axis: string): number {
  const n = extents.get(axis)
  if (n === undefined || !Number.isInteger(n) || n < 0 || n > MAX_POSITIONS)
    fail({
      code: 'bind/extent',
      message: n === undefined ? `axis ${axis} has no extent` : `axis ${axis} has the extent ${n}`,
      expected: `an integer from 0 to ${MAX_POSITIONS}`,
      hint: 'bind the sizes that the extent is made of',
    })
  return n
}

/** Extents, in the buffer's order. */
export const shapeOf = ({ axes, levels }: Pick<Storage, 'axes' | 'levels'>): readonly number[] =>
  axes.map((a) => levels.get(a.name)!.extent)
