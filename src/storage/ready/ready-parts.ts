/** Ready-made arrays of all parts as a tensor in a format: validated as kernel inputs are, and not copied. */

import { neededBy } from '../../analysis/dependence/query-dependence.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { type Coroutine, runSync } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import { binary, type Expr, not, variable } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { type FormatInstance, fullAxes, type Instance, type PartInstance } from '../../ir/formats/format.ts'
import { type Condition, conditionsOf } from '../../ir/formats/part-tree.ts'
import { type Query, sourceOf } from '../../ir/formats/queries.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { knownValue, sizesOfAxes } from '../build-storage.ts'
import { evaluateQueries } from '../columns/attribute-queries.ts'
import { checkExpressions } from '../columns/table-reads.ts'
import { bindLists } from '../convert.ts'
import { HOST } from '../engines/host/engine.ts'
import { entriesOf } from '../entries/entry-enumeration.ts'
import { levelsOf, partToCoords, type StoredPart, type StoredParts } from '../entries/stored-parts.ts'
import { type FormatOperands, withSegments } from '../format-operands.ts'
import { bindTables } from '../remapping/inverse-remapping.ts'
import { pointAt, pointOf, separatesDuplicates } from '../storage.ts'
import type { StoredTensor } from '../tensor.ts'
import { checkDisjoint, isKnownDisjoint, levelsAreUnique } from './elements.ts'
import {
  checkLists,
  checkMask,
  checkMaskAgrees,
  checkPermutation,
  storedValues,
  validateStored,
} from './validate.ts'

export interface PartArrays {
  readonly tensor: StoredTensor
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * Ready-made arrays of every part as a tensor in a format; nothing is copied.
 *
 * @param arrays one for each part of the instance, `shape` being the extents of the part's axes
 * @throws SptError `bind/shape`, `bind/missing-table`, `bind/table`, `format/overlap`, `format/leak`, `format/not-inverse`,
 * `format/map-range`, `format/map-overflow`, `bind/duplicate`, and as `validateStored`
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
    axes.map((a, d) => [a.name, Math.max(0, knownValue(a.extent, sizes) ?? tensor.shape[d] ?? 0)]),
  )
  const storage = validateStored(axes, sizesOfAxes(axes, { sizes, extents }), tensor, { part: true })
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
    entries: null,
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

// Placement of elements: each must be at the coordinate that the map yields, in a part whose condition it satisfies, as
// far as coordinates and lists determine it.

/** `dims` are columns of the frame; `coordinates` are on the format's axes, over its columns. */
export interface Placement<C> extends Pick<Scope<C>, 'dims' | 'lists'> {
  readonly instance: FormatInstance
  readonly coordinates: ReadonlyMap<string, Expr>
  /** Conditions over `dims`. */
  readonly conditions: readonly Condition[]
}

const readsList = (q: Query): boolean => sourceOf(q, 'list') !== undefined

/** True if the coordinates and the given lists determine the value of an expression. */
const isDetermined = (e: Expr, queries: readonly Query[], lists: ReadonlySet<string>): boolean =>
  neededBy(e, queries).every(readsList) && !someExpr(e, (x) => x.kind === 'load' && !lists.has(x.buffer))

/** True if a map with lists, or a condition, may contradict the placement of elements. */
const needsPlacementCheck = (
  { tables }: FormatInstance,
  conditions: readonly Condition[],
  lists: ReadonlyMap<string, unknown>,
): boolean =>
  tables.some((t) => t.kind === 'list') ||
  conditions.some((c) => isDetermined(c.where, c.queries, new Set(lists.keys())))

/**
 * Checks the placement of elements: with another list than that of construction, inverse maps yield other coordinates,
 * possibly repeated. @throws SptError `format/not-inverse`, `format/leak`, `format/map-range`, `format/map-overflow`
 */
export function* checkPlacement<C extends Column>(frame: Frame<C>, placement: Placement<C>): Coroutine<void> {
  const { instance, dims, coordinates, lists } = placement
  if (frame.n === 0 || dims.some((d) => !frame.column(d.name))) return
  yield* checkConditions(frame, placement)
  const listNames = new Set(instance.tables.flatMap((t) => (t.kind === 'list' ? [t.name] : [])))
  if (listNames.size === 0) return
  const determined = instance.order.flatMap((name, k) => {
    const e = instance.map[k]!
    return isDetermined(e, instance.queries, listNames)
      ? [{ name, e, needed: neededBy(e, instance.queries) }]
      : []
  })
  const queries = instance.queries.filter((q) => determined.some((t) => t.needed.includes(q)))
  const scope = { dims, lists, values: null, distinct: false, places: new Map(), sets: new Map() }
  yield* evaluateQueries(frame, queries, scope)
  yield* checkExpressions(
    frame,
    determined.map(({ e }) => e),
    dims,
    queries,
  )
  const mismatches = determined.map(({ name, e }) => binary('ne', e, coordinates.get(name)!))
  const [entry = -1] =
    mismatches.length === 0
      ? []
      : yield* frame.engine.findFirst(frame, [mismatches.reduce((a, b) => binary('or', a, b))])
  if (entry >= 0) {
    const storedExprs = determined.map(({ name }) => coordinates.get(name)!)
    const exprs = [...dims.map((d) => variable(d.name)), ...storedExprs, ...determined.map(({ e }) => e)]
    const values = yield* frame.engine.valuesAt(frame, exprs, entry)
    const [n, k] = [dims.length, determined.length]
    const dimensions = pointOf(
      dims.map((d) => d.name),
      values.slice(0, n),
    )
    const storedPoint = pointOf(
      determined.map((t) => t.name),
      values.slice(n, n + k),
    )
    failWith(
      'format/not-inverse',
      `the arrays of ${instance.text} hold ${dimensions} at ${storedPoint}, and the map puts it at (${values.slice(n + k).join(', ')})`,
      { expected: 'elements where the map puts them', hint: 'give the list that the arrays were made with' },
    )
  }
  for (const { name } of queries) frame.drop(name)
}

/** Elements that violate the condition of a part may belong to no part, or to another part. */
function* checkConditions<C extends Column>(
  frame: Frame<C>,
  { instance, dims, conditions, lists }: Placement<C>,
): Coroutine<void> {
  const scope = { dims, lists, values: null, distinct: false, places: new Map(), sets: new Map() }
  const listNames = new Set(lists.keys())
  for (const { where, queries } of conditions) {
    if (!isDetermined(where, queries, listNames)) continue
    const needed = neededBy(where, queries)
    yield* evaluateQueries(frame, needed, scope)
    yield* checkExpressions(frame, [where], dims, needed)
    const [entry = -1] = yield* frame.engine.findFirst(frame, [not(where)])
    if (entry >= 0)
      failWith(
        'format/leak',
        `the arrays of ${instance.text} hold ${yield* pointAt(frame, dims, entry)}, and its condition does not`,
        {
          ...(where.span && { span: where.span }),
          expected: 'elements of which the condition of the part holds',
          hint: 'remove the element, or give the list that the arrays were made with',
        },
      )
    for (const { name } of needed) frame.drop(name)
  }
}
