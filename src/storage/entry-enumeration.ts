/**
 * Enumeration of stored entries (coordinate and position iteration): the coordinate of a position on each level is an
 * expression over the position, evaluated on use. Only parents in ragged and compressed levels are materialised as
 * columns.
 */
import { hasIndices, hasWidth, isPadded, isSparse, type StoredAxis } from '../ir/axis.ts'
import type { CoordinateList } from '../ir/coordinate-lists.ts'
import type { Dtype } from '../ir/dtype.ts'
import { all, differs, div, type Expr, ge, int, load, lt, mod, variable } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import { ancestorCoordinates } from './ancestor-coordinates.ts'
import { type Column, ENTRY, type Engine, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import { type ElementMask, isHeld } from './element-masks.ts'
import { bindTables, guarded, type Inverse } from './inverse-remapping.ts'
import { atPositions, listedIn } from './list-tables.ts'
import type { Order } from './sort-elision.ts'
import type { Level } from './storage.ts'
import { checkInverseWords, checkReads, unsureReads } from './table-reads.ts'

/** A tensor stored over axes. */
export interface StoredLevels<C> {
  /** One chain of levels per tree, root first. */
  readonly trees: readonly (readonly Level<C>[])[]
  readonly size: number
  /** In position order; `null` in a pattern. */
  readonly values: C | null
  readonly dtype: Dtype
  /** Elements equal to this value are omitted; NaN equals NaN. */
  readonly drop: number | null
  /** The mask of entries, if there is one. */
  readonly mask?: ElementMask<C> | null
}

/**
 * True if every position that is not padding holds an entry: dense levels occur only above the last compressed level,
 * or are claimed full (`filled`).
 */
export function isExact<C>(
  trees: readonly (readonly Level<C>[])[],
  filled: readonly StoredAxis[] = [],
): boolean {
  if (trees.flat().some((l) => isPadded(l.axis))) return false
  const names = new Set(filled.map((a) => a.name))
  const heads = trees.map((tree) => tree.slice(0, tree.findLastIndex((l) => !names.has(l.axis.name)) + 1))
  const [head, ...others] = heads.filter((h) => h.length > 0)
  return others.length === 0 && isSparse(head?.at(-1)?.axis)
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
  const { coordinates, places, made } = coordinatesOnLevels(positions, stored, variable(ENTRY))
  const { lists = [] } = inverse
  const above = ({ under }: CoordinateList): Expr => places.get(under.at(-1)!)!
  const back = (e: Expr): Expr =>
    guarded(positions, substitute(atPositions(positions, e, lists, above), coordinates), inverse.tables)
  const dims = new Map(inverse.dims.map(({ name }, k) => [name, back(inverse.exprs[k]!)]))
  const held = [
    ...listedIn(inverse.exprs, lists).map(back),
    ...holdsIf(positions, stored, coordinates),
    ...(stored.mask ? [isHeld(positions, stored.mask, stored.trees, places)] : []),
  ]
  yield* checkInverse(positions, stored, inverse, { held, coordinates, dims, back })
  const conditions = [...held, ...inverse.dims.flatMap((d) => liesWithin(positions, d, dims, inverse))]
  const frame =
    conditions.length === 0
      ? everything(positions, dims, sizes, made)
      : yield* engine.compact(positions, all(conditions), dims, sizes)
  for (const d of inverse.dims) frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  frame.sortedBy = orderOf(stored, inverse)
  engine.release(...made.filter((c) => ![...frame.columns.values()].includes(c)))
  return frame
}

/** Coordinates and positions on each level by axis, for value positions `at`; `made`: newly allocated columns. */
export function coordinatesOnLevels<C extends Column>(
  frame: Frame<C>,
  { trees, size }: Pick<StoredLevels<C>, 'trees' | 'size'>,
  at: Expr,
) {
  const made: C[] = []
  const coordinates = new Map<string, Expr>()
  const places = new Map<string, Expr>()
  let after = size
  for (const tree of trees) {
    const own = tree.at(-1)?.positions ?? 1
    after = own === 0 ? 0 : after / own
    const place = trees.length === 1 ? at : mod(div(at, frame.sized(after)), frame.sized(own))
    ancestorCoordinates(frame, tree, place, coordinates, made, places)
  }
  return { coordinates, places, made }
}

/** The lexicographic order that a tree's positions imply for the dimensions. */
function orderOf<C>({ trees }: StoredLevels<C>, { dims, exprs }: Inverse<C>): Order {
  const out: Expr[] = []
  const [tree, ...others] = trees
  if (!tree || others.length > 0) return out
  for (const { axis } of tree) {
    if (hasIndices(axis) && (!axis.ordered || isPadded(axis))) break
    const dim = dims[exprs.findIndex((e) => e.kind === 'var' && e.name === axis.name)]
    if (!dim) break
    out.push(variable(dim.name))
  }
  return out
}

/** Conditions that a dimension's coordinate is within its extent; empty if coordinates are stored directly. */
function liesWithin<C extends Column>(
  frame: Frame<C>,
  { name, extent }: Inverse<C>['dims'][number],
  dims: ReadonlyMap<string, Expr>,
  { exprs }: Inverse<C>,
): Expr[] {
  const c = dims.get(name)!
  return exprs.every((e) => e.kind === 'var') ? [] : [ge(c, int(0)), lt(c, frame.sized(extent))]
}

/**
 * Checks where ready-made arrays place elements: no coordinate may be loaded from a position that a list does not have.
 * Elements outside the tensor in another dimension are ignored. @throws SptError `format/map-range`
 */
function* checkInverse<C extends Column>(
  frame: Frame<C>,
  { trees }: StoredLevels<C>,
  inverse: Inverse<C>,
  over: {
    readonly held: readonly Expr[]
    readonly coordinates: ReadonlyMap<string, Expr>
    readonly dims: ReadonlyMap<string, Expr>
    readonly back: (e: Expr) => Expr
  },
): Coroutine<void> {
  const extents = new Map(trees.flat().map((l) => [l.axis.name, l.extent]))
  const overAxes = { extents, inFrame: over.back, held: over.held }
  yield* checkInverseWords(frame, inverse.exprs, overAxes)
  const reads = inverse.exprs.map((e) => unsureReads(frame, [e], overAxes))
  const others = inverse.dims.flatMap((d, k) =>
    reads[k]!.length > 0 ? [] : liesWithin(frame, d, over.dims, inverse),
  )
  const named = { names: [...over.coordinates.keys()], exprs: [...over.coordinates.values()] }
  yield* checkReads(frame, reads.flat(), named, [...over.held, ...others])
}

/** Conditions for a position to hold an element: not padding, and not the dropped value. */
function holdsIf<C extends Column>(
  frame: Frame<C>,
  stored: StoredLevels<C>,
  coordinates: ReadonlyMap<string, Expr>,
): Expr[] {
  const levels = stored.trees.flat()
  const out = levels
    .filter((l) => hasWidth(l.axis))
    .map((l) => lt(coordinates.get(l.axis.name)!, frame.sized(l.extent)))
  if (stored.values && stored.drop !== null) {
    const dtype = frame.engine.bindNumbers(frame, VALUES, stored.values, stored.dtype)
    const value = load(VALUES, [variable(ENTRY)], dtype)
    out.push(differs(value, stored.drop))
  }
  return out
}

const VALUES = '@values'

/** A frame of all positions; existing columns are used directly. */
function everything<C extends Column>(
  positions: Frame<C>,
  dims: ReadonlyMap<string, Expr>,
  sizes: ReadonlyMap<string, number>,
  made: readonly C[],
): Frame<C> {
  const out = new Frame(positions.engine, positions.n, sizes)
  for (const [name, e] of dims) {
    const there = e.kind === 'load' && e.index[0]?.kind === 'var' && e.index[0].name === ENTRY
    const column = there ? positions.tables.get(e.buffer) : undefined
    if (column) out.set(name, column, made.includes(column))
    else {
      positions.engine.compute(positions, name, e)
      const own = positions.columns.get(name)!
      positions.keep(own)
      out.set(name, own)
    }
  }
  return out
}
