/**
 * Assembly of one level (Chou et al. 2018) from entries in order, or in any order if the level permits: its arrays, and
 * the position of each entry on it.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import {
  hasIndices,
  hasMask,
  hasWidth,
  isDense,
  isRagged,
  isSparse,
  type StoredAxis,
} from '../../ir/coordinates/axis.ts'
import { add, type Expr, int, load, mul, variable } from '../../ir/expressions/expr.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import type { Coroutine } from '../columns/coroutines.ts'
import type { SortKey, Starts } from '../columns/engine-operands.ts'
import { assembleFixedWidth, assembleFixedWidthFromRanks, assembleWidthOne } from './fixed-width-levels.ts'
import {
  type AssembledLevel,
  checkPositions,
  type Dimension,
  noArrays,
  type ParentPosition,
} from './levels.ts'

/**
 * True if positions of a tree are computed arithmetically: its only compressed level has width 1, so entries need no
 * order.
 */
export function hasSingleUnitWidth(tree: readonly Dimension[]): boolean {
  const sparse = tree.filter(({ axis }) => isSparse(axis))
  const [first, second] = sparse
  return first !== undefined && !second && hasWidth(first.axis) && first.axis.unique && first.width === 1
}

/**
 * Assembles the level of one axis. `starts`: additional starts of positions within runs of equal coordinates,
 * for nonunique axes.
 */
export function* assembleLevel<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: ParentPosition,
  starts: Starts | null,
  inAnyOrder: boolean,
): Coroutine<AssembledLevel<C>> {
  const { axis } = d
  if (isDense(axis)) return assembleDense(frame, d, parent)
  if (isRagged(axis)) return yield* assembleRagged(frame, d, parent)
  if (hasWidth(axis) && inAnyOrder) return yield* assembleWidthOne(frame, d, parent)
  const levelStarts = runStarts(d, parent, starts)
  if (hasMask(axis)) return yield* assembleBitmap(frame, d, parent, levelStarts)
  return yield* hasWidth(axis)
    ? assembleFixedWidth(frame, d, parent, levelStarts)
    : assembleCompressed(frame, d, parent, levelStarts)
}

/**
 * Entries that start a new position on a level: those where the parent or the coordinate changes, and those
 * in `starts`.
 */
const runStarts = (d: Dimension, { position }: ParentPosition, starts: Starts | null): Starts => {
  const keys = [...(position ? [position] : []), d.coordinate]
  const seen = new Set(keys.map(keyOf))
  return {
    keys: [...keys, ...(starts?.keys ?? []).filter((k) => !seen.has(keyOf(k)))],
    cut: starts?.cut ?? null,
  }
}

/** Dense: all coordinates under every parent position, computed arithmetically. */
function assembleDense<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent, capacity = Infinity }: Dimension,
  parent: ParentPosition,
): AssembledLevel<C> {
  const positions = checkPositions(frame, axis, Math.min(parent.positions * extent, capacity))
  const position = parent.position
    ? add(mul(parent.position, frame.bindSize(extent, `@extent ${axis.name}`)), coordinate)
    : coordinate
  return { level: { ...noArrays, axis, extent, positions }, position }
}

/** Ragged: the length of each segment is determined by its largest coordinate. */
function* assembleRagged<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: ParentPosition,
): Coroutine<AssembledLevel<C>> {
  const { engine } = frame
  invariant(parent.position, `${axis.name} has a parent`)
  const lengths = engine.lengths(
    frame,
    parent.position,
    coordinate,
    parent.positions,
    `lengths of ${axis.name}`,
  )
  const { indptr, total } = yield* engine.offsets(lengths, parent.positions * extent, `${axis.name}_indptr`)
  engine.release(lengths)
  const positions = checkPositions(frame, axis, total)
  const position = add(segmentStart(frame, axis, indptr, parent.position), coordinate)
  return { level: { ...noArrays, axis, extent, positions, indptr }, position }
}

/** The start of each entry's segment. */
function segmentStart<C extends Column>(frame: Frame<C>, axis: StoredAxis, indptr: C, parent: Expr): Expr {
  frame.tables.set(`@indptr ${axis.name}`, indptr)
  return load(`@indptr ${axis.name}`, [parent], 'i32')
}

/** Compressed: stores only the coordinates that occur. */
function* assembleCompressed<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: ParentPosition,
  starts: Starts,
): Coroutine<AssembledLevel<C>> {
  const { engine } = frame
  const name = `@at ${axis.name}`
  const positions = yield* engine.runs(frame, name, starts)
  const position = variable(name)
  const indptr = buildIndptr(frame, axis, parent, position, positions)
  const indices = engine.empty(positions, `${axis.name}_indices`)
  engine.scatterFirsts(frame, indices, position, coordinate)
  return { level: { ...noArrays, axis, extent, positions, indptr, indices }, position }
}

function buildIndptr<C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  parent: ParentPosition,
  position: Expr,
  positions: number,
): C {
  const label = `${axis.name}_indptr`
  return parent.position
    ? frame.engine.segmentEnds(frame, position, parent.position, parent.positions, label)
    : frame.engine.segment(positions, label)
}

/** A mask with one bit per coordinate, and positions for the set bits. */
function* assembleBitmap<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: ParentPosition,
  starts: Starts,
): Coroutine<AssembledLevel<C>> {
  invariant(parent.position, `${axis.name} has a parent`)
  const name = `@at ${axis.name}`
  const { mask, indptr, positions } = yield* frame.engine.bitmap(frame, name, starts, {
    parent: parent.position,
    parents: parent.positions,
    coordinate,
    words: Math.ceil(extent / 32),
    label: axis.name,
  })
  return { level: { ...noArrays, axis, extent, positions, indptr, mask }, position: variable(name) }
}

/** A level with indices from entries in any order, given the rank of each in its segment. */
export function* assembleFromRanks<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: ParentPosition,
  rank: Expr,
): Coroutine<AssembledLevel<C>> {
  if (hasWidth(d.axis)) return yield* assembleFixedWidthFromRanks(frame, d, parent, rank)
  const { engine } = frame
  const label = `lengths of ${d.axis.name}`
  const lengths = engine.lengths(frame, parent.position ?? int(0), rank, parent.positions, label)
  const assembled = yield* assembleCompressedFromRanks(frame, d, parent, rank, lengths)
  engine.release(lengths)
  return assembled
}

function* assembleCompressedFromRanks<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: ParentPosition,
  rank: Expr,
  lengths: C,
): Coroutine<AssembledLevel<C>> {
  const { engine } = frame
  const { indptr, total: positions } = yield* engine.offsets(lengths, frame.n, `${axis.name}_indptr`)
  const start = segmentStart(frame, axis, indptr, parent.position ?? int(0))
  const position = engine.materialize(frame, `@at ${axis.name}`, add(start, rank))
  const indices = engine.empty(positions, `${axis.name}_indices`)
  engine.scatter(frame, indices, position, coordinate)
  return { level: { ...noArrays, axis, extent, positions, indptr, indices }, position }
}

/**
 * A level with indices from entries in any order, by ranking coordinates within their segments; `null` if sorting is
 * cheaper.
 */
export function* assembleByRanking<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: ParentPosition,
  keys: readonly SortKey[],
): Coroutine<AssembledLevel<C> | null> {
  const { axis, coordinate, extent } = d
  const { engine } = frame
  if (!engine.rankInSegments || !hasIndices(axis) || !axis.unique) return null
  const name = `@rank ${axis.name}`
  const lengths = engine.rankInSegments(
    frame,
    name,
    { parent: parent.position, parents: parent.positions, coordinate, extent },
    keys,
  )
  if (!lengths) return null
  const rank = variable(name)
  if (hasWidth(axis)) return yield* assembleFixedWidthFromRanks(frame, d, parent, rank)
  return yield* assembleCompressedFromRanks(frame, d, parent, rank, lengths)
}
