/** Levels with a list of coordinates (`indices`) for each segment. */
import type { Level } from '../columns/stored-level.ts'
import {
  hasHoles,
  hasWidth,
  type IndexedAxis,
  indexBits,
  indicesOf,
  isPadded,
} from '../ir/coordinates/axis.ts'
import { add, type Expr, eq, load, lt, search } from '../ir/expressions/expr.ts'
import { segmentOf } from './segments.ts'
import type { Entry, IndexArray, KernelLevels, Located, Lookup, Segment } from './types.ts'

/** The array of coordinates. */
export function indicesArray(
  axis: IndexedAxis,
  levels: KernelLevels,
  values: IndexArray['values'] = {},
): IndexArray {
  const below = hasHoles(axis) ? {} : { below: axis.extent }
  const packed = axis.packed ? { packed: indexBits(axis) } : {}
  return { array: 'indices', length: levels.positions(axis.name), values: { ...below, ...values, ...packed } }
}

export function indexedEntry(axis: IndexedAxis, { base }: Segment, relative: Expr): Entry {
  const offset = add(base, relative)
  const coordinate = load(indicesOf(axis.name), [offset])
  return { offset, coordinate, guards: hasHoles(axis) ? [lt(coordinate, axis.extent)] : [] }
}

/** Searches for a coordinate: by bisection in ordered segments, linearly otherwise. */
export function searchIndices(
  axis: IndexedAxis,
  lookup: Lookup,
  segment: (parent: Expr | null, end: Expr | null) => Segment,
): Located {
  const { coordinate, above, facts } = lookup
  const { base: lo, length } = segmentOf(segment, lookup)
  const hi = add(lo, length)
  // The concatenated segments of several parents are not sorted as a whole.
  const ordered = axis.ordered && !isPadded(axis) && !above?.end
  const find = (method: 'lower' | 'upper' | 'linear'): Expr =>
    search(method, indicesOf(axis.name), lo, hi, coordinate)
  const found = find(ordered ? 'lower' : 'linear')
  const present = [lt(found, hi)]
  if (ordered) present.push(eq(load(indicesOf(axis.name), [found]), coordinate))
  // Padding has the extent as its coordinate, and must not match a search.
  if (hasWidth(axis) && !facts.below(coordinate, axis.extent)) present.push(lt(coordinate, axis.extent))
  const end = ordered && !axis.unique ? find('upper') : null
  return { position: { at: found, end, apart: above?.end != null }, present }
}

/** The position of coordinate c among those from lo to hi, or −1. */
export function findIndex({ axis }: Level, indices: Int32Array, lo: number, hi: number, c: number): number {
  let q = lo
  if ('ordered' in axis && axis.ordered && !isPadded(axis)) {
    let end = hi
    while (q < end) {
      const middle = (q + end) >>> 1
      if (indices[middle]! < c) q = middle + 1
      else end = middle
    }
  } else while (q < hi && indices[q] !== c) q++
  return q < hi && indices[q] === c ? q : -1
}
