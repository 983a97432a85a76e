/** Ready-made arrays of all parts as a tensor in a format: validated as kernel inputs are, and not copied. */

import { runSync } from '../../columns/coroutines.ts'
import { variable } from '../../ir/expressions/expr.ts'
import { fullAxes, type Instance, type PartInstance } from '../../ir/formats/format.ts'
import { type Condition, conditionsOf } from '../../ir/formats/part-tree.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { isKnown, paddingsOf, widthsOf } from '../build-storage.ts'
import { bindLists } from '../convert.ts'
import { HOST } from '../engines/host/engine.ts'
import { entriesOf } from '../entries/entry-enumeration.ts'
import { levelsOf, partToCoords, type StoredPart, type StoredParts } from '../entries/stored-parts.ts'
import type { FormatOperands } from '../format-operands.ts'
import { withSegments } from '../format-operands.ts'
import { bindTables } from '../remapping/inverse-remapping.ts'
import { separatesDuplicates } from '../storage.ts'
import type { StoredTensor } from '../tensor.ts'
import { checkDisjoint, isKnownDisjoint, levelsAreUnique } from './elements.ts'
import { checkPlacement, needsPlacementCheck } from './places.ts'
import { checkLists, checkMask, checkMaskAgrees, checkPermutation } from './tables.ts'
import { storedValues, validateStored } from './validate.ts'

/** Arrays of one part, and the tables that its inverse map loads. */
export interface PartArrays {
  readonly tensor: StoredTensor
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * Ready-made arrays of every part as a tensor in a format; nothing is copied.
 *
 * @param arrays one for each part of the instance, `shape` being the extents of the part's axes
 * @throws SptError `bind/shape`, `bind/missing-table`, `bind/table`, `format/overlap`, `format/leak`, `format/not-inverse`, `format/map-range`,
 * `format/map-overflow`, `bind/duplicate`, and as `validateStored`
 */
export function partsFromArrays(
  instance: Instance,
  arrays: readonly PartArrays[],
  given: FormatOperands,
  fill = 0,
): StoredParts {
  const parts = instance.parts.map((part, k) => partFromArrays(part, arrays[k]!, given, fill))
  const shape = instance.over.map((a) => given.extents.get(a.name) ?? 0)
  const dtype = arrays[0]?.tensor.dtype ?? 'f32'
  const stored: StoredParts = { kind: 'parts', instance, shape, dtype, fill, parts, given }
  for (const p of parts) {
    const { mask } = p.part.instance
    if (mask === undefined) continue
    const source = levelsOf(p, stored)
    checkMaskAgrees(mask, source.stored, source.inverse, {
      filled: fullAxes(p.part.instance),
      order: shape.length,
    })
  }
  checkCoordinates(stored)
  for (const [k, p] of parts.entries()) {
    const conditions = conditionsOf(instance.tree, k)
    if (needsPlacementCheck(p.part.instance, conditions, given.lists))
      checkPartPlacement(p, stored, conditions)
  }
  return stored
}

function checkPartPlacement(p: StoredPart, tensor: StoredParts, conditions: readonly Condition[]): void {
  const { instance } = p.part
  const { stored, inverse } = levelsOf(p, tensor)
  const axisDims = instance.order.map((a) => ({ name: `@${a}`, extent: p.storage.levels.get(a)!.extent }))
  const frame = runSync(
    entriesOf<TypedArray>(HOST, stored, {
      ...inverse,
      dims: [...inverse.dims, ...axisDims],
      exprs: [...inverse.exprs, ...instance.order.map((a) => variable(a))],
    }),
  )
  bindLists(frame, tensor.given.lists, tensor.given)
  bindTables(frame, inverse.tables)
  const coordinates = new Map(instance.order.map((a) => [a, variable(`@${a}`)]))
  runSync(
    checkPlacement<TypedArray>(frame, {
      instance,
      dims: inverse.dims,
      coordinates,
      conditions,
      lists: tensor.given.lists,
    }),
  )
  frame.release()
}

/** Extents of axes are those of the format; sizes to be measured are taken from the arrays. */
function partFromArrays(
  part: PartInstance,
  { tensor, tables: partTables }: PartArrays,
  given: FormatOperands,
  fill: number,
): StoredPart {
  const { axes, measured } = part.instance
  const sizes = new Map(withSegments(given).sizes)
  axes.forEach(({ extent }, d) => {
    if (extent.kind === 'var' && measured.some((m) => m.name === extent.name) && !sizes.has(extent.name))
      sizes.set(extent.name, tensor.shape[d] ?? 0)
  })
  const extents = new Map(
    axes.map((a, d) => [
      a.name,
      isKnown(a.extent, sizes) ? Math.max(0, evaluate(a.extent, sizes)) : (tensor.shape[d] ?? 0),
    ]),
  )
  const widths = widthsOf(axes, sizes)
  const storage = validateStored(axes, extents, tensor, {
    widths,
    paddings: paddingsOf(axes, sizes),
    part: true,
  })
  // Lists are given with the data, and arrays of the part cannot replace them.
  const lists = part.instance.tables.flatMap((t) => {
    const list = t.kind === 'list' ? given.lists.get(t.source) : undefined
    return list ? [[t.name, list] as const] : []
  })
  const tables = new Map([...partTables, ...lists])
  for (const t of part.instance.tables) if (t.kind === 'sort') checkPermutation(t, tables.get(t.name), sizes)
  checkLists(part.instance, storage, tables, sizes)
  const { mask, order } = part.instance
  if (mask !== undefined) checkMask(mask, order, storage, tables.get(mask))
  return {
    part,
    storage,
    values: storedValues(storage, tensor, fill),
    tables,
    measured: new Map(),
    occupied: null,
  }
}

function checkCoordinates(stored: StoredParts): void {
  const { over } = stored.instance
  const dims = over.map((a) => a.name)
  const parts = stored.parts.map(({ part: { label, instance } }) => ({
    name: label || instance.text,
    unique: levelsAreUnique(instance.axes, [{ instance, dims }]),
  }))
  const separateDuplicates = separatesDuplicates(over)
  if (isKnownDisjoint(parts, separateDuplicates)) return
  checkDisjoint({
    axes: over,
    shape: stored.shape,
    parts: stored.parts.map((p, k) => ({ ...parts[k]!, columns: partToCoords(p, stored).coords })),
    separateDuplicates,
    hint: 'remove the coordinate from one part',
  })
}
