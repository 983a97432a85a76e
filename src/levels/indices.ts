/** Levels with a list of coordinates (`indices`) for each segment, and the validation of their coordinates. */

import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import { type Column, ENTRY, type Engine, type Frame } from '../columns/column-engine.ts'
import { coordinatesOf, type Level, segment } from '../columns/stored-level.ts'
import type { IndexedAxis } from '../ir/coordinates/axis.ts'
import { hasHoles, hasWidth, indexBits, indicesOf, isPadded, padsWithLast } from '../ir/coordinates/axis.ts'
import { add, type Expr, eq, load, lt, search, variable } from '../ir/expressions/expr.ts'
import { fieldAt } from '../ir/values/packed-fields.ts'
import { segmentOf, tabulate } from './segments.ts'
import type { Entry, IndexArray, KernelLevels, Located, Lookup, Segment } from './types.ts'

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

// Validation of one level's coordinates; each failure names the axis, the position and the value.

/**
 * Checks range, order and uniqueness of coordinates; padding ends segments of fixed width. @throws SptError
 * `bind/index-range`, `bind/unsorted`, `bind/duplicate`, `bind/padding`
 */
export function checkIndices(axis: IndexedAxis, level: Level, parents: number, padding?: number): void {
  const indices = coordinatesOf(level)!
  const { extent } = level
  const repeatsLast = padsWithLast(axis)
  invariant(
    !isPadded(axis) || repeatsLast || padding !== undefined,
    `the padding of axis ${axis.name} is not known`,
  )
  const allowsPadding = hasWidth(axis) && !isPadded(axis)
  const maximum = allowsPadding ? extent : extent - 1
  for (let q = 0; q < indices.length; q++)
    if (indices[q]! < 0 || indices[q]! > maximum)
      failWith(
        'bind/index-range',
        `indices of axis ${axis.name} hold ${indices[q]} at position ${q}, and the extent is ${extent}`,
        {
          expected: allowsPadding ? `0 to ${extent - 1}, or ${extent} for padding` : `0 to ${extent - 1}`,
          hint:
            allowsPadding && indices[q] === -1
              ? `padding is marked by the extent (${extent}) here, not by -1`
              : 'bind a larger size, or subtract 1 where indices count from 1',
        },
      )
  const lastSegment = !axis.ordered && axis.unique ? lastSegmentTable(extent) : null
  for (let p = 0; p < parents; p++) {
    const [lo, end] = segment(level, p)
    let hi = end
    if (padding !== undefined) while (hi > lo && indices[hi - 1] === padding) hi--
    if (repeatsLast) while (hi - 1 > lo && indices[hi - 1] === indices[hi - 2]) hi--
    for (let q = lo; q < hi; q++) {
      const coordinate = indices[q]!
      const previous = q > lo ? indices[q - 1]! : -1
      if (previous === extent && coordinate !== extent)
        failWith(
          'bind/padding',
          `indices of axis ${axis.name} hold ${coordinate} at position ${q}, after padding`,
          {
            expected: 'padding at the end of a segment',
            hint: 'move the padding behind the stored coordinates',
          },
        )
      if (coordinate === extent) continue
      if (axis.ordered && coordinate < previous)
        failWith(
          'bind/unsorted',
          `indices of axis ${axis.name} fall from ${previous} to ${coordinate} at position ${q}`,
          {
            expected: 'ascending coordinates in each segment',
            hint: `stored(shape, arrays, values, dtype, { sort: true }) sorts the indices; or declare ${axis.name} unordered`,
          },
        )
      if (
        axis.unique &&
        (axis.ordered ? q > lo && coordinate === previous : lastSegment!(coordinate, p) === p)
      )
        failWith('bind/duplicate', `indices of axis ${axis.name} hold ${coordinate} again at position ${q}`, {
          expected: 'each coordinate once in a segment',
          hint: `stored(shape, arrays, values, dtype, { sum: true }) adds duplicates up; or declare ${axis.name} nonunique`,
        })
    }
  }
}

/** A function that returns the segment in which a coordinate last occurred (−1: none), and records `segment`. */
function lastSegmentTable(extent: number): (c: number, segment: number) => number {
  if (extent <= 2 ** 24) {
    const last = new Int32Array(extent).fill(-1)
    return (c, segment) => {
      const previous = last[c]!
      last[c] = segment
      return previous
    }
  }
  const last = new Map<number, number>()
  return (c, segment) => {
    const previous = last.get(c) ?? -1
    last.set(c, segment)
    return previous
  }
}

export function coordinateAt<C extends Column>(frame: Frame<C>, level: Level<C>, position: Expr): Expr {
  const name = `@indices ${level.axis.name}`
  frame.tables.set(name, level.indices!)
  if (level.bits !== undefined) frame.signed.add(name)
  return fieldAt(position, level.bits ?? 32, (word) => load(name, [word]))
}

/** The coordinates as a column; a newly allocated column is appended to `allocated`. */
export function coordinateColumn<C extends Column>(engine: Engine<C>, level: Level<C>, allocated: C[]): C {
  if (level.bits === undefined) return level.indices!
  const out = tabulate(engine, level.positions, 'coordinates', (f) => coordinateAt(f, level, variable(ENTRY)))
  allocated.push(out)
  return out
}
