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

import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../ast/work.ts'
import { MAX_POSITIONS, rejectCount } from '../columns/allocate.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import { arraysOfLevel, coordinatesOf, type Level, segment } from '../columns/stored-level.ts'
import type { StoredAxis } from '../ir/coordinates/axis.ts'
import { hasWidth, isDense, isPadded, keepsDuplicates, parentOf, sourceName } from '../ir/coordinates/axis.ts'
import { variable } from '../ir/expressions/expr.ts'
import { memoize } from '../ir/memoize.ts'
import type { StoredTensor } from './tensor.ts'

/** The arrays of levels by axis, including axes without arrays: the keys are the axes of the tensor. */
export const arraysOf = (levels: ReadonlyMap<string, Level>): StoredTensor['arrays'] =>
  Object.fromEntries([...levels].map(([name, level]) => [name, Object.fromEntries(arraysOfLevel(level))]))

export interface Storage<C = Int32Array> {
  /** In the buffer's order; a child after its parent. */
  readonly axes: readonly StoredAxis[]
  readonly levels: ReadonlyMap<string, Level<C>>
  /** One chain of levels for each tree, root first. */
  readonly trees: readonly (readonly Level<C>[])[]
  /** Elements of a buffer over all axes: the product of the trees' positions. @throws SptError `bind/too-large` */
  readonly size: number
}

/** Chains of axes, in order of roots. @throws SptError `bind/axis-order` (child before parent), `bind/branching` */
export const treesOf = memoize((axes: readonly StoredAxis[]): readonly (readonly StoredAxis[])[] => {
  const trees: StoredAxis[][] = []
  const treeOf = new Map<string, StoredAxis[]>()
  for (const axis of axes) {
    const parent = parentOf(axis)
    if (treeOf.has(axis.name))
      failWith('bind/axis-order', `axis ${axis.name} occurs twice in one buffer`, {
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
      failWith('bind/axis-order', `axis ${axis.name} comes before its parent ${parent}`, {
        expected: `${parent} among the axes before ${axis.name}`,
        hint: `write [${parent}, ${axis.name}]`,
      })
    const last = tree[tree.length - 1]!
    if (last.name !== parent)
      failWith(
        'bind/branching',
        `axes ${last.name} and ${axis.name} of one buffer are both under ${parent}`,
        {
          expected: 'at most one child of an axis in a buffer',
          hint: `make ${axis.name} a child of ${last.name}, or use two buffers`,
        },
      )
    tree.push(axis)
    treeOf.set(axis.name, tree)
  }
  return trees
})

/** Assembles a storage from its levels. @throws SptError `bind/too-large` */
export function makeStorage<C>(
  axes: readonly StoredAxis[],
  levels: ReadonlyMap<string, Level<C>>,
): Storage<C> {
  const trees = chainsOf(axes, levels)
  return { axes, levels, trees, size: elementCount(trees) }
}

/** A storage that may never be allocated as a whole, such as temporaries in registers: its size is computed on use. */
export function makeLazyStorage<C>(
  axes: readonly StoredAxis[],
  levels: ReadonlyMap<string, Level<C>>,
): Storage<C> {
  const trees = chainsOf(axes, levels)
  return {
    axes,
    levels,
    trees,
    get size() {
      return elementCount(trees)
    },
  }
}

const chainsOf = <C>(axes: readonly StoredAxis[], levels: ReadonlyMap<string, Level<C>>) =>
  treesOf(axes).map((tree) => tree.map((a) => levels.get(a.name)!))

/** The product of the trees' positions. @throws SptError `bind/too-large` */
function elementCount(trees: Storage<unknown>['trees']): number {
  const last = trees.map((tree) => tree.at(-1)!)
  let size = 1
  for (const l of last) size *= l.positions
  // Addresses may have 64 bits, which JavaScript computes in doubles. Entries of sparse axes are counted in i32.
  if (size > (last.every((l) => isDense(l.axis)) ? Number.MAX_SAFE_INTEGER : MAX_POSITIONS))
    rejectCount(size, `elements of a buffer over ${last.map((l) => l.axis.name).join(' × ')}`)
  return size
}

/** The part of a storage that a buffer over fewer axes uses: a prefix of each of some trees. */
export function restrict(storage: Storage, axes: readonly string[]): Storage {
  if (axes.length === storage.axes.length && axes.every((a, k) => a === storage.axes[k]!.name)) return storage
  const selectedAxes = axes.map((name) => {
    const level = storage.levels.get(name)
    if (!level)
      failWith('bind/unknown-axis', `no axis ${name} in this storage`, {
        lookup: { name, candidates: [...storage.levels.keys()] },
        expected: `some of ${[...storage.levels.keys()].join(', ')}`,
        hint: 'bind the structure of the axis first',
      })
    return level.axis
  })
  return makeStorage(selectedAxes, storage.levels)
}

/** True if elements with equal coordinates over these declared axes stay apart, which only a single tree permits. */
export const separatesDuplicates = (declared: readonly StoredAxis[]): boolean =>
  declared.some(keepsDuplicates) && treesOf(declared).length === 1

/** An extent, validated. @throws SptError `bind/extent` */
export function extentOf(extents: ReadonlyMap<string, number>, axis: string): number {
  const n = extents.get(axis)
  if (n === undefined || !Number.isInteger(n) || n < 0 || n > MAX_POSITIONS)
    failWith(
      'bind/extent',
      n === undefined ? `axis ${axis} has no extent` : `axis ${axis} has the extent ${n}`,
      {
        expected: `an integer from 0 to ${MAX_POSITIONS}`,
        hint:
          n === undefined
            ? 'bind the sizes that determine the extent'
            : 'bind other sizes, or partition the tensor',
      },
    )
  return n
}

export const shapeOf = ({ axes, levels }: Pick<Storage, 'axes' | 'levels'>): readonly number[] =>
  axes.map((a) => levels.get(a.name)!.extent)

// Padding positions of a tree: those without a coordinate, and their descendants.

/** For each level of a chain, 1 at padding positions; `null` if there is none. O(positions). */
export function paddedPositions(chain: readonly Level[]): readonly (Uint8Array | null)[] {
  let parentPadding: Uint8Array | null = null
  return chain.map((level) => {
    parentPadding = markPadding(level, parentPadding)
    return parentPadding
  })
}

/** The padding positions of one level, given those of its parent; `null` if there are none. */
export function markPadding(level: Level, parentPadding: Uint8Array | null): Uint8Array | null {
  const { positions, extent } = level
  if (!parentPadding && !hasWidth(level.axis)) return null
  const out = new Uint8Array(positions)
  let hasPadding = false
  if (hasWidth(level.axis)) {
    const coordinates = coordinatesOf(level)!
    if (isPadded(level.axis)) hasPadding = markRepeated(level, coordinates, out)
    else
      for (let q = 0; q < positions; q++)
        if (coordinates[q] === extent) {
          out[q] = 1
          hasPadding = true
        }
  }
  if (parentPadding)
    for (let p = 0; p < parentPadding.length; p++) {
      if (parentPadding[p] === 0) continue
      const [lo, hi] = segment(level, p)
      if (hi === lo) continue
      out.fill(1, lo, hi)
      hasPadding = true
    }
  return hasPadding ? out : null
}

/**
 * Marks padding that stores a coordinate: positions after an element whose coordinate does not ascend. Two
 * cases are mistaken for elements: the first position of an empty segment, and padding greater than the
 * elements. Returns true if any position was marked.
 */
function markRepeated({ positions, width }: Level, coordinates: Int32Array, out: Uint8Array): boolean {
  const w = width ?? 0
  let hasPadding = false
  for (let lo = 0; w > 0 && lo < positions; lo += w)
    for (let q = lo + 1; q < lo + w; q++)
      if (out[q - 1] === 1 || coordinates[q]! <= coordinates[q - 1]!) {
        out[q] = 1
        hasPadding = true
      }
  return hasPadding
}

// Checks of coordinate arrays: lengths, ranges, extents.

/** The largest coordinate of each axis. @throws SptError `bind/coordinates`, `bind/coordinate-range`, `bind/extent` */
export function checkCoords(
  axes: readonly { readonly name: string }[],
  extents: ReadonlyMap<string, number>,
  coords: readonly Int32Array[],
): number[] {
  if (coords.length !== axes.length)
    failWith('bind/coordinates', `${coords.length} coordinate arrays for ${axes.length} axes`, {
      expected: `an Int32Array for each of ${axes.map((a) => a.name).join(', ')}`,
      hint: 'bind a tensor with as many dimensions as the buffer has axes',
    })
  return axes.map((axis, k) => {
    const extent = extentOf(extents, axis.name)
    const column = coords[k]!
    if (!(column instanceof Int32Array) || column.length !== coords[0]!.length)
      failWith(
        'bind/coordinates',
        column instanceof Int32Array
          ? `axis ${axis.name} has ${column.length} coordinates, axis ${axes[0]!.name} has ${coords[0]!.length}`
          : `the coordinates of axis ${axis.name} are not an Int32Array`,
        { expected: 'Int32Arrays of equal length', hint: 'give a coordinate per axis for every entry' },
      )
    let max = 0
    for (let e = 0; e < column.length; e++) {
      const coordinate = column[e]!
      if (coordinate < 0 || coordinate >= extent)
        failWith(
          'bind/coordinate-range',
          `entry ${e} has the coordinate ${coordinate} on axis ${axis.name}, whose extent is ${extent}`,
          {
            expected: extent === 0 ? 'no entries' : `coordinates from 0 to ${extent - 1}`,
            hint: 'bind a larger size, or subtract 1 where coordinates count from 1',
          },
        )
      if (coordinate > max) max = coordinate
    }
    return max
  })
}

// Coordinates of entries as text, for messages.

/** `(i, j) = (3, 5)` */
export const pointOf = (names: readonly string[], values: readonly number[]): string =>
  `(${names.join(', ')}) = (${values.join(', ')})`

export function* pointAt<C extends Column>(
  frame: Frame<C>,
  dims: readonly Pick<StoredAxis, 'name' | 'copyOf'>[],
  entry: number,
): Coroutine<string> {
  const exprs = dims.map((d) => variable(d.name))
  return pointOf(dims.map(sourceName), yield* frame.engine.valuesAt(frame, exprs, entry))
}
