/** Elements of ready-made arrays over a tensor's own axes: no two have equal coordinates, unless they stay apart. */

import type { Level } from '../../columns/stored-level.ts'
import { hasWidth, isNonunique, isSparse, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { chainOf } from '../assembly/padding-positions.ts'
import { differing, expandTree, toCoords } from '../entries/stored-coords.ts'
import { type Storage, separatesDuplicates } from '../storage.ts'
import type { CoordTensor, StoredTensor, ValueArray } from '../tensor.ts'
import { checkDisjoint } from './disjoint.ts'

/**
 * Checks that no coordinate is stored twice. Coordinates on several trees differ if those on one tree do, so that each
 * tree is checked separately.
 */
export function checkElements(
  storage: Storage,
  { values, dtype }: Pick<StoredTensor, 'values' | 'dtype'>,
  {
    name = 'what is bound',
    fill = 0,
  }: { readonly name?: string | undefined; readonly fill?: number | undefined },
): void {
  if (storage.trees.length === 1) return
  storage.trees.forEach((tree, t) => {
    const axes = tree.map((a) => storage.levels.get(a)!.axis)
    if (!axes.some(isNonunique)) return
    const { positions, coords } = expandTree(storage, tree)
    const occupied =
      values && hasSpareSlots(axes) ? occupiedPositions(storage, t, differing(values, dtype, fill)) : null
    checkDisjoint({
      axes,
      shape: tree.map((a) => storage.levels.get(a)!.extent),
      parts: [
        {
          name,
          columns: occupied ? coords.map((c) => c.filter((_, e) => occupied[positions[e]!] === 1)) : coords,
          unique: false,
        },
      ],
      separateDuplicates: separatesDuplicates(storage.axes),
      unique: 'add the duplicates up: axes of several trees keep none apart, nonunique or not',
    })
  })
}

/**
 * The elements of ready-made arrays. If no slot under an existing position holds an element, its last slot is
 * an element with the fill value: a `dense_variable` axis ends with its element.
 */
export function elementsOf(storage: Storage, values: ValueArray, dtype: Dtype, fill: number): CoordTensor {
  const axesOf = (tree: readonly string[]): StoredAxis[] => tree.map((a) => storage.levels.get(a)!.axis)
  if (!storage.trees.some((tree) => hasSpareSlots(axesOf(tree)))) return toCoords(storage, values, dtype)
  const elements = differing(values, dtype, fill)
  const occupied = storage.trees.map((tree, t) => {
    if (!hasSpareSlots(axesOf(tree))) return null
    const occupied = occupiedPositions(storage, t, elements)
    markLastSlots(chainOf(storage, tree), occupied)
    return occupied
  })
  return toCoords(storage, values, dtype, occupied)
}

/**
 * True if there are slots for other coordinates next to an element; they hold the fill value. A position of a
 * nonunique axis exists for one element (`nonunique-positions.ts`), and dense axes under that axis have
 * further slots.
 */
const hasSpareSlots = (axes: readonly StoredAxis[]): boolean =>
  !isSparse(axes.at(-1)) && axes.some((a, d) => isNonunique(a) && !hasWidth(axes[d + 1]))

/** 1 at each position of a tree that holds one of `elements`, for any positions on the other trees. */
function occupiedPositions({ trees, levels }: Storage, t: number, elements: Int32Array): Uint8Array {
  const sizes = trees.map((tree) => levels.get(tree.at(-1)!)!.positions)
  const stride = sizes.slice(t + 1).reduce((a, b) => a * b, 1)
  const occupied = new Uint8Array(sizes[t]!)
  for (const e of elements) occupied[Math.floor(e / stride) % sizes[t]!] = 1
  return occupied
}

/**
 * Marks the last slot under each position of the innermost compressed axis, if no slot under that position is
 * marked.
 */
function markLastSlots(chain: readonly Level[], occupied: Uint8Array): void {
  const depth = chain.findLastIndex((l) => isSparse(l.axis))
  const dense = chain.slice(depth + 1)
  for (let p = 0; p < chain[depth]!.positions; p++) {
    const start = dense.reduce((q, l) => firstChild(l, q), p)
    const end = dense.reduce((q, l) => firstChild(l, q), p + 1)
    if (end > start && !occupied.subarray(start, end).includes(1)) occupied[end - 1] = 1
  }
}

const firstChild = (level: Level, p: number): number => level.indptr?.[p] ?? p * (level.width ?? level.extent)
