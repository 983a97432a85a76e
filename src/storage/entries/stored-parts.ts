/** Tensors in formats and compositions on the host, and their conversion back to coordinates. */

import { runSync } from '../../ast/work.ts'
import { ascending, concat, withScratchPool } from '../../columns/allocate.ts'
import { Frame } from '../../columns/column-engine.ts'
import { provedOf } from '../../formats/proof/prove.ts'
import { variable } from '../../ir/expressions/expr.ts'
import type { Instance } from '../../ir/formats/format.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { type ListPosition, rewriteListLoads } from '../assembly/list-tables.ts'
import { assemblePartLevels } from '../assembly/part-arrays.ts'
import { setTrees } from '../build-storage.ts'
import { bindLists, checkOrder, convert, dependsOnValues, forEachPart } from '../convert.ts'
import { HOST } from '../engines/host/engine.ts'
import { newValues as computed } from '../engines/host/map-reduce.ts'
import type { FormatOperands } from '../format-operands.ts'
import { withSegments } from '../format-operands.ts'
import { bindTables, inverseTables } from '../remapping/inverse-remapping.ts'
import type { Part } from '../remapping/part-assembly.ts'
import { checkCoords, restrict } from '../storage.ts'
import { type CoordTensor, gatherValues, newValues, type ValueArray } from '../tensor.ts'
import { entriesOfPart, levelsOfPart } from './entry-enumeration.ts'
import { locate } from './locate.ts'
import { coordinatesAt, takeColumns } from './stored-coords.ts'

/** A part in arrays of the host. Tables: arrays that the inverse map loads, and its mask, by name. */
export type StoredPart = Part<Int32Array, ValueArray>

export interface StoredParts {
  readonly kind: 'parts'
  readonly instance: Instance
  readonly shape: readonly number[]
  readonly dtype: CoordTensor['dtype']
  readonly fill: number
  readonly parts: readonly StoredPart[]
  readonly given: FormatOperands
}

/**
 * Converts a tensor to a format or composition. Values at equal coordinates are added. O(entries × axes + positions).
 * Arrays of the input are never written, and may be arrays of the result.
 *
 * @param fill the value of positions without an entry @throws SptError `format/overlap`, `format/leak`,
 * `format/not-inverse`, `format/map-range`, `format/map-overflow`, `format/claim`, `bind/shape`,
 * `bind/coordinate-range`, and as `buildStorage` and `scatterValues`
 */
export function convertTensor(
  tensor: CoordTensor | StoredParts,
  to: Instance,
  given: FormatOperands,
  fill = 0,
): StoredParts {
  const { shape, dtype } = tensor
  const options = checkedOptions(tensor, to, given, fill)
  const parts = withScratchPool(() => runSync(convert(HOST, tensor, to, options)))
  // Columns of levels, positions and tables are i32.
  return { kind: 'parts', instance: to, shape, dtype, fill, parts: parts as readonly StoredPart[], given }
}

/**
 * The total number of values of all parts, padding included. No values are stored, and values are read only if a format
 * depends on them. @throws SptError as `convertTensor`
 */
export function slotsOf(tensor: CoordTensor, to: Instance, given: FormatOperands): number {
  const options = checkedOptions(tensor, to, given, 0)
  const source = dependsOnValues(to) ? tensor : { ...tensor, values: null }
  const sizes = withScratchPool(() =>
    runSync(
      forEachPart<TypedArray, { size: number; tables: ReadonlyMap<string, TypedArray> }>(
        HOST,
        source,
        to,
        options,
        function* (part, k, frame, context) {
          // Arrays of levels may belong to the tensor, so they are not released.
          const { size, tables } = yield* assemblePartLevels(frame, part, context, options.proved[k]!)
          frame.release()
          return { size, tables }
        },
      ),
    ),
  )
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

function checkedOptions(
  tensor: CoordTensor | StoredParts,
  to: Instance,
  given: FormatOperands,
  fill: number,
) {
  const { shape } = tensor
  checkOrder(shape, to)
  if (tensor.kind === 'coords')
    checkCoords(to.over, new Map(to.over.map((a, k) => [a.name, shape[k]!])), tensor.coords)
  const proved = to.parts.map((p) => provedOf(p.instance, to.over))
  return { given, fill, proved, sets: setTrees(given, to, shape) }
}

/** All elements, part after part, in position order, without padding and fill values of dense levels. */
export function partsToCoords(stored: StoredParts): CoordTensor {
  const { shape, dtype } = stored
  const partEntries = stored.parts.map((p) => partToCoords(p, stored))
  const [only] = partEntries
  if (only && partEntries.length === 1) return { kind: 'coords', shape, dtype, ...only }
  const coords = shape.map((_, k) => concat(partEntries.map((f) => f.coords[k]!)))
  const columns = partEntries.map(({ values: column }) => ({ column, entry: null, n: column.length }))
  const values = HOST.concatenate(columns, dtype)
  return { kind: 'coords', shape, coords, values, dtype }
}

export const levelsOf = (p: StoredPart, stored: StoredParts) =>
  levelsOfPart<TypedArray>(p, stored, dimsOf(stored))

const dimsOf = ({ instance, shape }: StoredParts) =>
  instance.over.map((a, k) => ({ name: a.name, extent: shape[k]! }))

export function partToCoords(
  p: StoredPart,
  stored: StoredParts,
): { readonly coords: readonly Int32Array[]; readonly values: ValueArray } {
  const dims = dimsOf(stored)
  return withScratchPool(() => {
    const frame = runSync(entriesOfPart(HOST, p, stored, dims, new Map()))
    const coords = takeColumns(
      frame,
      dims.map((d) => d.name),
      [...p.storage.levels.values()],
    )
    const entry = frame.entry as Int32Array | null
    const { dtype } = stored
    return { coords, values: entry ? gatherValues({ values: p.values, dtype }, entry) : p.values.slice() }
  })
}

/** Maps coordinates on a part's axes to the tensor's. Padding may be mapped to coordinates outside the tensor. */
export function originalCoords(
  { part, storage, tables }: StoredPart,
  { given }: StoredParts,
  coords: readonly Int32Array[],
): Int32Array[] {
  const { instance } = part
  const operands = withSegments(given)
  const frame = new Frame<TypedArray>(HOST, coords[0]?.length ?? 0, operands.sizes)
  for (const [k, a] of storage.axes.entries()) frame.set(a.name, coords[k]!, false)
  bindLists(frame, operands.lists, operands)
  bindTables(frame, inverseTables<TypedArray>(instance, tables, operands.sizes, operands))
  for (const { under } of instance.lists) {
    const last = under.at(-1)!
    const ancestorStorage = restrict(storage, under)
    const ancestorCoords = under.map((name) => coords[storage.axes.findIndex((a) => a.name === name)]!)
    frame.set(positionColumn(last), locate(ancestorStorage, ancestorCoords))
  }
  const position: ListPosition = ({ under }) => variable(positionColumn(under.at(-1)!))
  return instance.inverse.map((e) => computed(frame, rewriteListLoads(frame, e, instance.lists, position)))
}

const positionColumn = (axis: string): string => `@position ${axis}`

export interface OccupiedEntries {
  /** `null` if only the arrays are known: the elements are then those that differ from the fill value. */
  readonly positions: Int32Array | null
  readonly coords: readonly Int32Array[]
}

/** The positions of a part's elements and their coordinates in the tensor; each position once. O(entries). */
export function occupiedEntries(p: StoredPart, stored: StoredParts): OccupiedEntries {
  const positions = occupiedPositions(p)
  return {
    positions,
    coords: positions
      ? originalCoords(p, stored, coordinatesAt(p.storage, positions))
      : partToCoords(p, stored).coords,
  }
}

/** Each position that holds a coordinate of the tensor, once; `null` if only the arrays are known. */
export function occupiedPositions({ storage, entries }: StoredPart): Int32Array | null {
  if (!entries) return null
  const { positions, distinct, count } = entries
  if (!positions || distinct) return positions ?? ascending(count, 'positions')
  const seen = newValues('u8', storage.size)
  return positions.filter((p) => {
    const isFirst = seen[p] === 0
    seen[p] = 1
    return isFirst
  })
}
