/**
 * Assembly of one level (Chou et al. 2018) from entries in order, or in any order if the level permits: its arrays, and
 * the position of each entry on it.
 */
import { invariant } from '../ast/diagnostic.ts'
import { hasIndices, hasMask, hasWidth, isDense, isRagged, isSparse, type StoredAxis } from '../ir/axis.ts'
import { add, type Expr, int, load, mul, variable } from '../ir/expr.ts'
import { keyOf } from '../ir/structural-equality.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { SortKey, Starts } from './engine-operands.ts'
import { onlyOnes, rankedFixed, sparseFixed } from './fixed-width-levels.ts'
import { checked, type Dimension, type Made, none, type Place } from './levels.ts'

/**
 * True if positions of a tree are computed arithmetically: its only compressed level has width 1, so entries need no
 * order.
 */
export function isDirect(tree: readonly Dimension[]): boolean {
  const stored = tree.filter(({ axis }) => isSparse(axis))
  const [only, more] = stored
  return only !== undefined && !more && hasWidth(only.axis) && only.axis.unique && only.width === 1
}

/** `starts`: additional starts of positions within runs of equal coordinates, for nonunique axes. */
export function* assembleLevel<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  starts: Starts | null,
  direct: boolean,
): Coroutine<Made<C>> {
  const { axis } = d
  if (isDense(axis)) return denseFixed(frame, d, parent)
  if (isRagged(axis)) return yield* denseVariable(frame, d, parent)
  if (hasWidth(axis) && direct) return yield* onlyOnes(frame, d, parent)
  const begins = startsOf(d, parent, starts)
  if (hasMask(axis)) return yield* bitmap(frame, d, parent, begins)
  return yield* hasWidth(axis) ? sparseFixed(frame, d, parent, begins) : compressed(frame, d, parent, begins)
}

/** Starts of positions on a level: where the parent or the coordinate changes, and at `starts`. */
const startsOf = (d: Dimension, { at }: Place, starts: Starts | null): Starts => {
  const keys = [...(at ? [at] : []), d.coordinate]
  const known = new Set(keys.map(keyOf))
  return {
    keys: [...keys, ...(starts?.keys ?? []).filter((k) => !known.has(keyOf(k)))],
    cut: starts?.cut ?? null,
  }
}

/** Dense: all coordinates under every parent position, computed arithmetically. */
function denseFixed<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent, room = Infinity }: Dimension,
  parent: Place,
): Made<C> {
  const positions = checked(frame, axis, Math.min(parent.positions * extent, room))
  const at = parent.at
    ? add(mul(parent.at, frame.sized(extent, `@extent ${axis.name}`)), coordinate)
    : coordinate
  return { level: { ...none, axis, extent, positions }, at }
}

/** Ragged: the length of each segment is determined by its largest coordinate. */
function* denseVariable<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: Place,
): Coroutine<Made<C>> {
  const { engine } = frame
  invariant(parent.at, `${axis.name} has a parent`)
  const lengths = engine.lengths(frame, parent.at, coordinate, parent.positions, `lengths of ${axis.name}`)
  const { indptr, total } = yield* engine.offsets(lengths, parent.positions * extent, `${axis.name}_indptr`)
  engine.release(lengths)
  const positions = checked(frame, axis, total)
  const at = add(offsetOf(frame, axis, indptr, parent.at), coordinate)
  return { level: { ...none, axis, extent, positions, indptr }, at }
}

/** The start of each entry's segment. */
function offsetOf<C extends Column>(frame: Frame<C>, axis: StoredAxis, indptr: C, parent: Expr): Expr {
  frame.tables.set(`@indptr ${axis.name}`, indptr)
  return load(`@indptr ${axis.name}`, [parent], 'i32')
}

/** Compressed: stores only the coordinates that occur. */
function* compressed<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: Place,
  starts: Starts,
): Coroutine<Made<C>> {
  const { engine } = frame
  const name = `@at ${axis.name}`
  const positions = yield* engine.runs(frame, name, starts)
  const at = variable(name)
  const indptr = segments(frame, axis, parent, at, positions)
  const indices = engine.empty(positions, `${axis.name}_indices`)
  engine.scatterFirsts(frame, indices, at, coordinate)
  return { level: { ...none, axis, extent, positions, indptr, indices }, at }
}

function segments<C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  parent: Place,
  at: Expr,
  positions: number,
): C {
  const label = `${axis.name}_indptr`
  return parent.at
    ? frame.engine.segmentEnds(frame, at, parent.at, parent.positions, label)
    : frame.engine.segment(positions, label)
}

/** A mask with one bit per coordinate, and positions for the set bits. */
function* bitmap<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: Place,
  starts: Starts,
): Coroutine<Made<C>> {
  invariant(parent.at, `${axis.name} has a parent`)
  const name = `@at ${axis.name}`
  const { mask, indptr, positions } = yield* frame.engine.bitmap(frame, name, starts, {
    parent: parent.at,
    parents: parent.positions,
    coordinate,
    words: Math.ceil(extent / 32),
    label: axis.name,
  })
  return { level: { ...none, axis, extent, positions, indptr, mask }, at: variable(name) }
}

/** A level with indices from entries in any order, given the rank of each in its segment. */
export function* levelOfRanks<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  rank: Expr,
): Coroutine<Made<C>> {
  if (hasWidth(d.axis)) return yield* rankedFixed(frame, d, parent, rank)
  const { engine } = frame
  const label = `lengths of ${d.axis.name}`
  const lengths = engine.lengths(frame, parent.at ?? int(0), rank, parent.positions, label)
  const made = yield* compressedOfRanks(frame, d, parent, rank, lengths)
  engine.release(lengths)
  return made
}

function* compressedOfRanks<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: Place,
  rank: Expr,
  lengths: C,
): Coroutine<Made<C>> {
  const { engine } = frame
  const { indptr, total: positions } = yield* engine.offsets(lengths, frame.n, `${axis.name}_indptr`)
  const begin = offsetOf(frame, axis, indptr, parent.at ?? int(0))
  const at = engine.materialize(frame, `@at ${axis.name}`, add(begin, rank))
  const indices = engine.empty(positions, `${axis.name}_indices`)
  engine.scatter(frame, indices, at, coordinate)
  return { level: { ...none, axis, extent, positions, indptr, indices }, at }
}

/**
 * A level with indices from entries in any order, by ranking coordinates within their segments; `null` if sorting is
 * cheaper.
 */
export function* rankedLevel<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  keys: readonly SortKey[],
): Coroutine<Made<C> | null> {
  const { axis, coordinate, extent } = d
  const { engine } = frame
  if (!engine.ranked || !hasIndices(axis) || !axis.unique) return null
  const name = `@rank ${axis.name}`
  const lengths = engine.ranked(
    frame,
    name,
    { parent: parent.at, parents: parent.positions, coordinate, extent },
    keys,
  )
  if (!lengths) return null
  const rank = variable(name)
  if (hasWidth(axis)) return yield* rankedFixed(frame, d, parent, rank)
  return yield* compressedOfRanks(frame, d, parent, rank, lengths)
}
