/**
 * Enumeration of stored entries (coordinate and position iteration): the coordinate of a position on each level is an
 * expression over the position, evaluated on use. Only parents in ragged and compressed levels are materialised as
 * columns.
 */

import type { Coroutine } from '../../ast/work.ts'
import { type Column, ENTRY, type Engine, Frame } from '../../columns/column-engine.ts'
import type { Order } from '../../columns/engine-operands.ts'
import type { Level } from '../../columns/stored-level.ts'
import { hasIndices, hasWidth, isPadded, isSparse, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { CoordinateList } from '../../ir/coordinates/derived-names.ts'
import { all, differs, div, type Expr, ge, int, load, lt, mod, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { fullAxes } from '../../ir/formats/format.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { computeAncestorCoordinates } from '../../levels/index.ts'
import { listConditions, rewriteListLoads } from '../assembly/list-tables.ts'
import { type ElementMask, isElement } from '../assembly/packed-indices.ts'
import { checkInverseWords, checkReads, uncheckedReads } from '../columns/table-reads.ts'
import { type FormatOperands, withSegments } from '../format-operands.ts'
import { bindTables, guardLoads, type Inverse, inverseTables } from '../remapping/inverse-remapping.ts'
import type { Context, Part } from '../remapping/part-assembly.ts'

export interface StoredLevels<C> {
  /** One chain of levels per tree, root first. */
  readonly trees: readonly (readonly Level<C>[])[]
  readonly size: number
  /** In position order; `null` in a pattern. */
  readonly values: C | null
  readonly dtype: Dtype
  /** Elements equal to this value are omitted; NaN equals NaN. */
  readonly drop: number | null
  readonly mask?: ElementMask<C> | null
}

/** True if every position but padding holds an entry: dense levels are above the last sparse one, or `filled`. */
export function isExact<C>(
  trees: readonly (readonly Level<C>[])[],
  filled: readonly StoredAxis[] = [],
): boolean {
  if (trees.flat().some((l) => isPadded(l.axis))) return false
  const names = new Set(filled.map((a) => a.name))
  const heads = trees.map((tree) => tree.slice(0, tree.findLastIndex((l) => !names.has(l.axis.name)) + 1))
  const [chain, ...otherChains] = heads.filter((h) => h.length > 0)
  return otherChains.length === 0 && isSparse(chain?.at(-1)?.axis)
}

/**
 * The entries of a stored tensor: a frame with a column for each dimension, whose `entry` is the position of the value,
 * and that has the given `sizes`. Padding is omitted.
 */
export function* entriesOf<C extends Column>(
  engine: Engine<C>,
  stored: StoredLevels<C>,
  inverse: Inverse<C>,
  sizes = inverse.sizes,
): Coroutine<Frame<C>> {
  const positions = new Frame(engine, stored.size, inverse.sizes)
  bindTables(positions, inverse.tables)
  const { coordinates, levelPositions, allocated } = coordinatesOnLevels(positions, stored, variable(ENTRY))
  const { lists = [] } = inverse
  const ancestorPosition = ({ under }: CoordinateList): Expr => levelPositions.get(under.at(-1)!)!
  const toTensor = (e: Expr): Expr =>
    guardLoads(
      positions,
      substitute(rewriteListLoads(positions, e, lists, ancestorPosition), coordinates),
      inverse.tables,
    )
  const dims = new Map(inverse.dims.map(({ name }, k) => [name, toTensor(inverse.exprs[k]!)]))
  const elementConditions = [
    ...listConditions(inverse.exprs, lists).map(toTensor),
    ...elementConditionsOf(positions, stored, coordinates),
    ...(stored.mask ? [isElement(positions, stored.mask, stored.trees, levelPositions)] : []),
  ]
  yield* checkInverse(positions, stored, inverse, { elementConditions, coordinates, dims, toTensor })
  const conditions = [
    ...elementConditions,
    ...inverse.dims.flatMap((d) => withinExtent(positions, d, dims, inverse)),
  ]
  const frame =
    conditions.length === 0
      ? allPositions(positions, dims, sizes, allocated)
      : yield* engine.compact(positions, all(conditions), dims, sizes)
  for (const d of inverse.dims) frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  frame.sortedBy = impliedOrder(stored, inverse)
  engine.release(...allocated.filter((c) => ![...frame.columns.values()].includes(c)))
  return frame
}

/** Coordinates and positions on each level by axis, for `valuePosition`; `allocated`: new columns. */
export function coordinatesOnLevels<C extends Column>(
  frame: Frame<C>,
  { trees, size }: Pick<StoredLevels<C>, 'trees' | 'size'>,
  valuePosition: Expr,
) {
  const allocated: C[] = []
  const coordinates = new Map<string, Expr>()
  const levelPositions = new Map<string, Expr>()
  let stride = size
  for (const tree of trees) {
    const treeSize = tree.at(-1)?.positions ?? 1
    stride = treeSize === 0 ? 0 : stride / treeSize
    const treePosition =
      trees.length === 1
        ? valuePosition
        : mod(div(valuePosition, frame.bindSize(stride)), frame.bindSize(treeSize))
    computeAncestorCoordinates(frame, tree, treePosition, coordinates, allocated, levelPositions)
  }
  return { coordinates, levelPositions, allocated }
}

/** The lexicographic order that a tree's positions imply for the dimensions. */
function impliedOrder<C>({ trees }: StoredLevels<C>, { dims, exprs }: Inverse<C>): Order {
  const out: Expr[] = []
  const [tree, ...otherTrees] = trees
  if (!tree || otherTrees.length > 0) return out
  for (const { axis } of tree) {
    if (hasIndices(axis) && (!axis.ordered || isPadded(axis))) break
    const dim = dims[exprs.findIndex((e) => e.kind === 'var' && e.name === axis.name)]
    if (!dim) break
    out.push(variable(dim.name))
  }
  return out
}

/** Conditions that a dimension's coordinate is within its extent; empty if coordinates are stored directly. */
function withinExtent<C extends Column>(
  frame: Frame<C>,
  { name, extent }: Inverse<C>['dims'][number],
  dims: ReadonlyMap<string, Expr>,
  { exprs }: Inverse<C>,
): Expr[] {
  const c = dims.get(name)!
  return exprs.every((e) => e.kind === 'var') ? [] : [ge(c, int(0)), lt(c, frame.bindSize(extent))]
}

/**
 * No coordinate is loaded from a position that a list does not have, except by elements outside the tensor. @throws SptError
 * `format/map-range`
 */
function* checkInverse<C extends Column>(
  frame: Frame<C>,
  { trees }: StoredLevels<C>,
  inverse: Inverse<C>,
  maps: {
    readonly elementConditions: readonly Expr[]
    readonly coordinates: ReadonlyMap<string, Expr>
    readonly dims: ReadonlyMap<string, Expr>
    readonly toTensor: (e: Expr) => Expr
  },
): Coroutine<void> {
  const extents = new Map(trees.flat().map((l) => [l.axis.name, l.extent]))
  const overAxes = { extents, inFrame: maps.toTensor, elementConditions: maps.elementConditions }
  yield* checkInverseWords(frame, inverse.exprs, overAxes)
  const listReads = inverse.exprs.map((e) => uncheckedReads(frame, [e], overAxes))
  const otherConditions = inverse.dims.flatMap((d, k) =>
    listReads[k]!.length > 0 ? [] : withinExtent(frame, d, maps.dims, inverse),
  )
  const label = { names: [...maps.coordinates.keys()], exprs: [...maps.coordinates.values()] }
  yield* checkReads(frame, listReads.flat(), label, [...maps.elementConditions, ...otherConditions])
}

/** Conditions for a position to hold an element: not padding, and not the dropped value. */
function elementConditionsOf<C extends Column>(
  frame: Frame<C>,
  stored: StoredLevels<C>,
  coordinates: ReadonlyMap<string, Expr>,
): Expr[] {
  const levels = stored.trees.flat()
  const out = levels
    .filter((l) => hasWidth(l.axis))
    .map((l) => lt(coordinates.get(l.axis.name)!, frame.bindSize(l.extent)))
  if (stored.values && stored.drop !== null) {
    const dtype = frame.engine.bindNumbers(frame, VALUES, stored.values, stored.dtype)
    const value = load(VALUES, [variable(ENTRY)], dtype)
    out.push(differs(value, stored.drop))
  }
  return out
}

const VALUES = '@values'

function allPositions<C extends Column>(
  positions: Frame<C>,
  dims: ReadonlyMap<string, Expr>,
  sizes: ReadonlyMap<string, number>,
  allocated: readonly C[],
): Frame<C> {
  const out = new Frame(positions.engine, positions.n, sizes)
  for (const [name, e] of dims) {
    const isDirectLoad = e.kind === 'load' && e.index[0]?.kind === 'var' && e.index[0].name === ENTRY
    const column = isDirectLoad ? positions.tables.get(e.buffer) : undefined
    if (column) out.set(name, column, allocated.includes(column))
    else {
      positions.engine.compute(positions, name, e)
      const computed = positions.columns.get(name)!
      positions.keep(computed)
      out.set(name, computed)
    }
  }
  return out
}

// The entries of one part of a tensor in a format.

interface TensorProperties {
  readonly dtype: Dtype
  readonly fill: number
  readonly given: FormatOperands
}

export function* entriesOfPart<C extends Column>(
  engine: Engine<C>,
  part: Part<C>,
  tensor: TensorProperties,
  dims: Context<C>['dims'],
  sizes: ReadonlyMap<string, number>,
): Coroutine<Frame<C>> {
  const { stored, inverse } = levelsOfPart(part, tensor, dims)
  return yield* entriesOf(engine, stored, inverse, sizes)
}

export function levelsOfPart<C extends Column>(
  { part: { instance }, storage: { trees, size }, values, tables, measured }: Part<C>,
  tensor: TensorProperties,
  dims: Context<C>['dims'],
): { readonly stored: StoredLevels<C>; readonly inverse: Inverse<C> } {
  const partSizes = new Map([...withSegments(tensor.given).sizes, ...measured])
  const inverse: Inverse<C> = {
    dims,
    exprs: instance.inverse,
    sizes: partSizes,
    tables: inverseTables(instance, tables, partSizes, tensor.given),
    lists: instance.lists,
  }
  const mask =
    instance.mask === undefined ? null : { words: tables.get(instance.mask)!, axes: instance.order }
  const drop = isExact(trees, fullAxes(instance)) || mask ? null : tensor.fill
  return { stored: { trees, size, values, dtype: tensor.dtype, drop, mask }, inverse }
}
