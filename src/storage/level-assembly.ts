/**
 * Assembly of one level (Chou et al. 2018) from entries in order, or that need none: its arrays, and the position of
 * each entry on it.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import { MAX_POSITIONS } from '../columns/allocate.ts'
import {
  hasIndices,
  hasMask,
  hasWidth,
  isDense,
  isRagged,
  isSparse,
  type PaddedAxis,
  parentOf,
  type StoredAxis,
} from '../ir/axis.ts'
import { add, binary, type Expr, eq, int, load, mul, select, variable } from '../ir/expr.ts'
import { keyOf } from '../ir/structural-equality.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { SortKey, Starts } from './engine-operands.ts'
import type { Level } from './storage.ts'

/** An axis, the coordinate of each entry on it, and its sizes; a width that is `null` is still to be measured. */
export interface Dimension {
  readonly axis: StoredAxis
  readonly coordinate: Expr
  readonly extent: number
  readonly padding: number
  readonly width: number | null
}

export interface Place {
  /** Position on the level so far; `null`: the only segment of a root. */
  readonly at: Expr | null
  readonly positions: number
}

export interface Made<C> {
  readonly level: Level<C>
  readonly at: Expr
}

const none = { width: null, indptr: null, indices: null, mask: null }

/**
 * Whether arithmetic places every entry: stored coordinates that are the only ones of their parent position need no
 * order.
 */
export function isDirect(tree: readonly Dimension[]): boolean {
  const stored = tree.filter(({ axis }) => isSparse(axis))
  const [only, more] = stored
  return only !== undefined && !more && hasWidth(only.axis) && only.axis.unique && only.width === 1
}

/** `starts`: where a nonunique axis begins new positions inside of a run of equal coordinates. */
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

/** Where a level begins new positions: where the parent's or the coordinate changes, and at `starts`. */
const startsOf = (d: Dimension, { at }: Place, starts: Starts | null): Starts => {
  const keys = [...(at ? [at] : []), d.coordinate]
  const known = new Set(keys.map(keyOf))
  return {
    keys: [...keys, ...(starts?.keys ?? []).filter((k) => !known.has(keyOf(k)))],
    cut: starts?.cut ?? null,
  }
}

/** All coordinates under every parent position: arithmetic alone. */
function denseFixed<C extends Column>(
  frame: Frame<C>,
  { axis, coordinate, extent }: Dimension,
  parent: Place,
): Made<C> {
  const positions = checked(frame, axis, parent.positions * extent)
  const at = parent.at
    ? add(mul(parent.at, frame.sized(extent, `@extent ${axis.name}`)), coordinate)
    : coordinate
  return { level: { ...none, axis, extent, positions }, at }
}

/** Ragged: each segment is as long as its largest coordinate needs. */
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

/** Where the segment of each entry begins. */
function offsetOf<C extends Column>(frame: Frame<C>, axis: StoredAxis, indptr: C, parent: Expr): Expr {
  frame.tables.set(`@indptr ${axis.name}`, indptr)
  return load(`@indptr ${axis.name}`, [parent], 'i32')
}

/** Compressed: the positions that exist. */
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

/** A bit for each coordinate, positions for those that are set. */
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

/** Fixed width: what a segment does not fill is padding, last. */
function* sparseFixed<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  starts: Starts,
): Coroutine<Made<C>> {
  invariant(parent.at, `${d.axis.name} has a parent`)
  const name = `@rank ${d.axis.name}`
  // Where the parent began a new position wherever the width was used up, ranks are known (`nonunique-positions.ts`).
  if (d.width !== null && d.width > 0 && frame.names().includes(name))
    return padded(frame, d, parent, d.width)
  frame.engine.ranks(frame, name, starts, 1)
  return yield* rankedFixed(frame, d, parent)
}

/** The same with the rank of each entry in its segment. */
function* rankedFixed<C extends Column>(frame: Frame<C>, d: Dimension, parent: Place): Coroutine<Made<C>> {
  const next = add(variable(`@rank ${d.axis.name}`), int(1))
  const needed = yield* frame.engine.largest(frame, next)
  const width = d.width ?? needed
  if (width < needed) yield* tooNarrow(frame, d, parent, eq(next, int(needed)), `${needed}`)
  return padded(frame, d, parent, width)
}

function padded<C extends Column>(frame: Frame<C>, d: Dimension, parent: Place, width: number): Made<C> {
  const { axis } = d
  // The only rank is 0.
  if (width === 1) return fixed(frame, d, width, parent.at!, parent.positions)
  // Before places are computed that would be too large for one.
  checked(frame, axis, parent.positions * width)
  const at = add(mul(parent.at!, frame.sized(width, `@width ${axis.name}`)), variable(`@rank ${axis.name}`))
  return fixed(
    frame,
    d,
    width,
    frame.engine.materialize(frame, `@at ${axis.name}`, at),
    parent.positions * width,
  )
}

/** Width 1, for positions that have one coordinate each: checked by reading back what was written. */
function* onlyOnes<C extends Column>(frame: Frame<C>, d: Dimension, parent: Place): Coroutine<Made<C>> {
  invariant(parent.at, `${d.axis.name} has a parent`)
  const made = fixed(frame, d, 1, parent.at, parent.positions)
  const name = `@indices ${d.axis.name}`
  frame.tables.set(name, made.level.indices!)
  const clash = binary('ne', load(name, [parent.at], 'i32'), d.coordinate)
  const found = yield* frame.engine.largest(frame, select(clash, int(1), int(0)))
  if (found > 0) yield* tooNarrow(frame, d, parent, clash, '2 or more')
  return made
}

/** Indices, and padding where there are none. */
function fixed<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  width: number,
  at: Expr,
  size: number,
): Made<C> {
  const { axis, coordinate, extent, padding } = d
  const positions = checked(frame, axis, size)
  if (hasWidth(axis)) checkPadding(axis, padding, extent, positions)
  const indices = frame.engine.filled(positions, padding, `${axis.name}_indices`)
  frame.engine.scatter(frame, indices, at, coordinate)
  return { level: { ...none, axis, extent, width, positions, indices }, at }
}

/**
 * A level with indices from entries in any order, `null` where an order is cheaper: coordinates are ranked within
 * their segments.
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
  if (hasWidth(axis)) return yield* rankedFixed(frame, d, parent)
  const { indptr, total: positions } = yield* engine.offsets(lengths, frame.n, `${axis.name}_indptr`)
  const at = engine.materialize(
    frame,
    `@at ${axis.name}`,
    add(offsetOf(frame, axis, indptr, parent.at ?? int(0)), variable(name)),
  )
  const indices = engine.empty(positions, `${axis.name}_indices`)
  engine.scatter(frame, indices, at, coordinate)
  return { level: { ...none, axis, extent, positions, indptr, indices }, at }
}

function checked<C extends Column>(frame: Frame<C>, axis: StoredAxis, positions: number): number {
  if (positions > MAX_POSITIONS) frame.engine.tooLarge(positions, `positions of axis ${axis.name}`, axis.span)
  return positions
}

/**
 * Kernels visit padding that has a coordinate, which must be one of the tensor.
 * @throws SptError `format/padding`
 */
function checkPadding(axis: PaddedAxis, padding: number, extent: number, positions: number): void {
  if (!axis.padding || positions === 0 || (padding >= 0 && padding < extent)) return
  const span = axis.padding.span ?? axis.span
  fail({
    code: 'format/padding',
    message: `axis ${axis.name} is padded with the coordinate ${padding}, and its extent is ${extent}`,
    ...(span && { span }),
    expected: extent === 0 ? 'a dimension that has coordinates' : `0 to ${extent - 1}`,
    hint: 'without `padded with`, padding has no coordinate and is passed over',
  })
}

/** `where`: holds of an entry under the position that does not hold its coordinates. */
function* tooNarrow<C extends Column>(
  frame: Frame<C>,
  { axis, width }: Dimension,
  parent: Place,
  where: Expr,
  needed: string,
): Coroutine<never> {
  const [entry = 0] = yield* frame.engine.first(frame, [where])
  const [position] = yield* frame.engine.valuesAt(frame, [parent.at!], entry)
  return fail({
    code: 'bind/width',
    message: `axis ${axis.name} has the width ${width}, but position ${position} of ${parentOf(axis)} stores ${needed} coordinates`,
    expected: `an integer width of at least ${needed.split(' ')[0]}`,
    hint: 'give a greater width, leave it to be measured (`w: size`), or choose a format for what does not fit',
  })
}
