/** Coordinate remapping of one part: the coordinates of its entries in its format. */

import { rankFrom } from '../analysis/known-ranks.ts'
import { neededBy } from '../analysis/query-dependence.ts'
import type { Proved } from '../formats/proof/proved.ts'
import { chainTo, hasIndices } from '../ir/axis.ts'
import type { Dtype } from '../ir/dtype.ts'
import { add, binary, type Expr, ge, int, not, variable } from '../ir/expr.ts'
import { freeVars, substitute } from '../ir/expr-tree.ts'
import type { FormatInstance, PartInstance } from '../ir/format.ts'
import { evaluateQueries, positiveIn } from './attribute-queries.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { Scope } from './engine-operands.ts'
import { checkFilled } from './filled-slots.ts'
import { type FormatOperands, givenList } from './format-operands.ts'
import { bindTables, guarded, inverseTables } from './inverse-remapping.ts'
import { assembleLists, atPositions, listedIn, positionAbove } from './list-tables.ts'
import { isNotUndone, leavesExtents } from './remapping-refusals.ts'
import { evaluateSort } from './sort-permutations.ts'
import type { Level, PlacedEntries } from './storage.ts'
import { checkAsked, checkInverseWords, namedBy, refuseRead, unsureReads } from './table-reads.ts'
import type { Begun } from './tree-assembly.ts'

/** The data that a conversion uses in addition to the entries. */
export interface Context<C> extends Omit<Scope<C>, 'places'> {
  /** Values to be stored, by entry of the source; `null` for a pattern. */
  readonly stored: C | null
  readonly given: FormatOperands
  readonly dtype: Dtype
  readonly fill: number
}

/** The placement of a part's entries in its format. */
export interface Remapped<C> {
  /** The coordinate on each axis of the part, by name. */
  readonly coordinates: ReadonlyMap<string, Expr>
  /** By axis: the rank of that coordinate in its segment, if a query provides it. */
  readonly ranks: ReadonlyMap<string, Expr>
  /** The part's tables by name. */
  readonly tables: ReadonlyMap<string, C>
  /** Levels above its lists, by their last axis. */
  readonly begun: ReadonlyMap<string, Begun<C>>
}

/** A part with its arrays. */
export interface Part<C> {
  readonly part: PartInstance
  readonly levels: ReadonlyMap<string, Level<C>>
  /** Elements of a buffer over all axes. */
  readonly size: number
  /** In position order; the fill value at empty positions. */
  readonly values: C
  /** The positions of its entries, if they are kept. */
  readonly entries: PlacedEntries<C> | null
  /** Arrays that the inverse map loads, and its mask, by name. */
  readonly tables: ReadonlyMap<string, C>
  /** Values of the part's measured sizes. */
  readonly measured: ReadonlyMap<string, number>
}

/**
 * The coordinates of a part's entries in its format. Unless it is proved, every entry is checked: the map must stay
 * within the axes' extents, and the inverse must undo it. @throws SptError `format/map-range`, `format/not-inverse`,
 * `format/map-overflow`, `format/claim` with the coordinate, and as `evaluateQueries` and `evaluateSort`
 */
export function* remapCoordinates<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
): Coroutine<Remapped<C>> {
  const { instance } = part
  const places = new Map<string, C>()
  const tables = new Map<string, C>()
  for (const table of instance.tables) {
    const list = table.of === 'list' ? context.lists.get(table.source) : undefined
    if (!list) continue
    tables.set(table.name, list)
    // Maps load it by its name in the format, whatever its name among the data is.
    frame.tables.set(table.name, list)
    frame.lists.set(table.name, givenList(context.given, table.source))
  }
  const asked = new Set<string>()
  for (const sort of instance.sorts) {
    const onAxis = sort.of.kind !== 'var' || sort.of.name !== sort.dim
    if (onAxis) {
      const first = neededBy(sort.of, instance.queries).filter((q) => !asked.has(q.name))
      for (const q of first) asked.add(q.name)
      yield* evaluateQueries(frame, first, { ...context, places })
      yield* checkAsked(frame, [sort.of], context.dims, instance.queries)
      frame.engine.compute(frame, sort.dim, sort.of)
    }
    const { place, at } = yield* evaluateSort(frame, sort, { ...context, places })
    if (onAxis) frame.drop(sort.dim)
    places.set(sort.place, place)
    tables.set(sort.at, at)
  }
  const others = instance.queries.filter((q) => !asked.has(q.name))
  yield* evaluateQueries(frame, others, { ...context, places })
  const written = [...instance.map, ...instance.lists.map((l) => l.coordinate)]
  yield* checkAsked(frame, written, context.dims, instance.queries)
  frame.engine.release(...places.values())
  const ranks = ranksIn(frame, instance)
  const { coordinates, begun } = yield* mapped(frame, part, context, { tables, ranks, proved })
  const loads = inverseTables(instance, tables, frame.sizes, context.given)
  if (!instance.claims.every((c) => c.follows))
    yield* checkFilled(frame, { instance, dims: context.dims, coordinates, tables: loads })
  const late = instance.map.filter((_, k) => frame.deferred.has(`@${instance.order[k]}`))
  const all = [...coordinates.values(), ...ranks.values(), ...late]
  const used = new Set(all.flatMap((e) => [...freeVars(e)]))
  for (const { name } of instance.queries) if (!used.has(name)) frame.drop(name)
  return { coordinates, ranks, tables, begun }
}

/** The ranks of coordinates on an axis under its ancestors, if a query of the map provides them. */
function ranksIn<C extends Column>(
  frame: Frame<C>,
  { axes, order, map, queries }: FormatInstance,
): ReadonlyMap<string, Expr> {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const mapped = (name: string): Expr => map[order.indexOf(name)]!
  return new Map(
    axes.filter(hasIndices).flatMap(({ name }) => {
      const above = chainTo(byName, name).slice(0, -1)
      const rank = rankFrom([mapped(name)], above.map(mapped), queries, positiveIn(frame))
      return rank ? [[name, rank] as const] : []
    }),
  )
}

function* mapped<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  { dims, given }: Context<C>,
  known: { tables: Map<string, C>; ranks: ReadonlyMap<string, Expr>; proved: Proved },
): Coroutine<Pick<Remapped<C>, 'coordinates' | 'begun'>> {
  const { tables, ranks, proved } = known
  const { engine } = frame
  const { instance } = part
  const { lists } = instance
  const coordinates = new Map<string, Expr>()
  for (const [k, name] of instance.order.entries())
    coordinates.set(name, engine.materialize(frame, `@${name}`, instance.map[k]!, proved.range))
  const listed = new Map(
    lists.map((l) => [l.axis.name, engine.materialize(frame, `@${l.axis.name}`, l.coordinate)]),
  )
  const extents = yield* extentsOf(frame, instance, coordinates)
  if (proved.range)
    for (const [name, extent] of extents) frame.bounds.set(`@${name}`, [0, Math.max(0, extent - 1)])
  const beyond = ([name, e]: readonly [string, Expr]): readonly Expr[] => {
    const extent = extents.get(name)
    const low = binary('lt', e, int(0))
    return extent === undefined ? [low] : [low, ge(e, frame.sized(extent, `@extent ${name}`))]
  }
  const refusal = { frame, part, coordinates, extents, back: [], dims }
  const above = new Set(lists.flatMap((l) => l.under))
  // Lists are built from coordinates within their axes.
  if (lists.length > 0 && !proved.range) {
    const first = [...[...coordinates].filter(([name]) => above.has(name)), ...listed].flatMap(beyond)
    const [found = -1] = yield* engine.first(frame, [first.reduce((a, b) => binary('or', a, b))])
    if (found >= 0)
      yield* leavesExtents({ ...refusal, coordinates: new Map([...coordinates, ...listed]) }, found)
  }
  const begun = yield* assembleLists(frame, instance, new Map([...coordinates, ...listed]), ranks, tables)
  const loads = inverseTables(instance, tables, frame.sizes, given)
  bindTables(frame, loads)
  const inFrame = (e: Expr): Expr =>
    guarded(frame, substitute(atPositions(frame, e, lists, positionAbove), coordinates), loads)
  const back = instance.inverse.map(inFrame)
  const overAxes = { extents, inFrame }
  yield* checkInverseWords(frame, instance.inverse, overAxes)
  const reads = unsureReads(frame, instance.inverse, overAxes)
  // Maps fit 32 bits, and so do inverses of coordinates on the axes; composed bounds may be weaker.
  for (const e of [...back, ...reads.map((r) => r.at)]) frame.fitting.add(e)
  const outside = [...coordinates].flatMap(beyond)
  const wrong = [
    ...back.map((e, k) => binary('ne', e, variable(dims[k]!.name))),
    ...listedIn(instance.inverse, lists).map((e) => not(inFrame(e))),
  ]
  const unsure = [
    ...(proved.range ? [] : [{ any: outside, refuse: leavesExtents }]),
    ...reads.map((read) => ({
      any: [read.outside],
      refuse: (_: unknown, at: number) => refuseRead(frame, read, namedBy(dims), at),
    })),
    ...(proved.inverse && back.every((e) => engine.fits(frame, e))
      ? []
      : [{ any: wrong, refuse: isNotUndone }]),
  ]
  if (unsure.length === 0) return { coordinates, begun }
  const found = yield* engine.first(
    frame,
    unsure.map(({ any }) => any.reduce((a, b) => binary('or', a, b))),
  )
  for (const [k, { refuse }] of unsure.entries())
    if (found[k]! >= 0) yield* refuse({ ...refusal, back }, found[k]!)
  return { coordinates, begun }
}

/** Extents by axis; those to be measured are 1 + the largest coordinate. */
function* extentsOf<C extends Column>(
  frame: Frame<C>,
  instance: FormatInstance,
  coordinates: ReadonlyMap<string, Expr>,
): Coroutine<ReadonlyMap<string, number>> {
  const open = new Set(instance.measured.map((m) => m.name))
  const measured = new Map<string, number>()
  for (const { name, extent } of instance.axes) {
    if (extent.kind !== 'var' || frame.isKnown(extent) || !open.has(extent.name)) continue
    const [, most] = yield* frame.engine.bounds(frame, add(coordinates.get(name)!, int(1)))
    measured.set(extent.name, Math.max(measured.get(extent.name) ?? 0, most))
  }
  for (const [name, value] of measured) frame.sizes.set(name, value)
  return new Map(
    [...instance.axes, ...instance.lists.map((l) => l.axis)].flatMap(({ name, extent }) =>
      frame.isKnown(extent) ? [[name, frame.size(extent)] as const] : [],
    ),
  )
}
