/** Elements of ready-made arrays over a tensor's own axes: no two have equal coordinates, unless they stay apart. */
import { hasWidth, isNonunique, isSparse, type StoredAxis } from '../../ir/axis.ts'
import type { Dtype } from '../../ir/dtype.ts'
import { chainOf } from '../padding-positions.ts'
import { keepsApart, type Level, type Storage } from '../storage.ts'
import { differing, expandTree, toCoords } from '../stored-coords.ts'
import type { CoordTensor, StoredTensor, ValueArray } from '../tensor.ts'
import { checkOnce } from './disjoint.ts'

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
    const held = values && hasRoom(axes) ? heldPlaces(storage, t, differing(values, dtype, fill)) : null
    checkOnce({
      axes,
      shape: tree.map((a) => storage.levels.get(a)!.extent),
      parts: [
        {
          name,
          columns: held ? coords.map((c) => c.filter((_, e) => held[positions[e]!] === 1)) : coords,
          once: false,
        },
      ],
      apart: keepsApart(storage.axes),
      once: 'add the duplicates up: axes of several trees keep none apart, nonunique or not',
    })
  })
}

/**
 * The elements of ready-made arrays. If no slot under an existing position holds an element, its last slot counts as
 * one: a `dense_variable` axis ends with its element.
 */
export function elementsOf(storage: Storage, values: ValueArray, dtype: Dtype, fill: number): CoordTensor {
  const axesOf = (tree: readonly string[]): StoredAxis[] => tree.map((a) => storage.levels.get(a)!.axis)
  if (!storage.trees.some((tree) => hasRoom(axesOf(tree)))) return toCoords(storage, values, dtype)
  const elements = differing(values, dtype, fill)
  const held = storage.trees.map((tree, t) => {
    if (!hasRoom(axesOf(tree))) return null
    const places = heldPlaces(storage, t, elements)
    holdLast(chainOf(storage, tree), places)
    return places
  })
  return toCoords(storage, values, dtype, held)
}

/**
 * Whether an element is stored next to slots of other coordinates; such slots hold the fill value. A position of a
 * nonunique axis exists for one element (`nonunique-positions.ts`), and dense axes under it have further slots.
 */
const hasRoom = (axes: readonly StoredAxis[]): boolean =>
  !isSparse(axes.at(-1)) && axes.some((a, d) => isNonunique(a) && !hasWidth(axes[d + 1]))

/** 1 at positions of a tree that hold one of the listed elements, for any positions on the other trees. */
function heldPlaces({ trees, levels }: Storage, t: number, elements: Int32Array): Uint8Array {
  const sizes = trees.map((tree) => levels.get(tree.at(-1)!)!.positions)
  const after = sizes.slice(t + 1).reduce((a, b) => a * b, 1)
  const held = new Uint8Array(sizes[t]!)
  for (const e of elements) held[Math.floor(e / after) % sizes[t]!] = 1
  return held
}

/** Marks the last slot under each position of the innermost compressed axis that has no marked slot. */
function holdLast(chain: readonly Level[], held: Uint8Array): void {
  const depth = chain.findLastIndex((l) => isSparse(l.axis))
  const dense = chain.slice(depth + 1)
  for (let p = 0; p < chain[depth]!.positions; p++) {
    const begin = dense.reduce((q, l) => firstUnder(l, q), p)
    const end = dense.reduce((q, l) => firstUnder(l, q), p + 1)
    if (end > begin && !held.subarray(begin, end).includes(1)) held[end - 1] = 1
  }
}

const firstUnder = (level: Level, p: number): number => level.indptr?.[p] ?? p * (level.width ?? level.extent)
