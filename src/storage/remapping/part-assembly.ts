/** Coordinate remapping of one part: the coordinates of its entries in its format. */

import { neededBy, rankFrom } from '../../analysis/dependence/query-dependence.ts'
import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import type { PlacedEntries } from '../../columns/stored-level.ts'
import { chainTo, hasIndices } from '../../ir/coordinates/axis.ts'
import { add, binary, type Expr, ge, int, not, variable } from '../../ir/expressions/expr.ts'
import { freeVars, substitute } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance, PartInstance, Proved } from '../../ir/formats/format.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { checkFilled } from '../assembly/filled-slots.ts'
import { assembleLists, listConditions, listPosition, rewriteListLoads } from '../assembly/list-tables.ts'
import type { TreePrefix } from '../assembly/tree-assembly.ts'
import { evaluateQueries } from '../columns/attribute-queries.ts'
import { evaluateSort } from '../columns/sort-permutations.ts'
import {
  checkExpressions,
  checkInverseWords,
  labelByDims,
  rejectRead,
  uncheckedReads,
} from '../columns/table-reads.ts'
import { type FormatOperands, givenList } from '../format-operands.ts'
import type { Storage } from '../storage.ts'
import {
  bindTables,
  guardLoads,
  inverseTables,
  rejectNotInverse,
  rejectOutOfExtent,
} from './inverse-remapping.ts'

/** The data that a conversion uses in addition to the entries. */
export interface Context<C> extends Omit<Scope<C>, 'places'> {
  /** Values to be stored, by entry of the source; `null` for a pattern. */
  readonly stored: C | null
  readonly given: FormatOperands
  readonly dtype: Dtype
  readonly fill: number
}

export interface Remapped<C> {
  readonly coordinates: ReadonlyMap<string, Expr>
  /** By axis: the rank of that coordinate in its segment, if a query provides it. */
  readonly ranks: ReadonlyMap<string, Expr>
  readonly tables: ReadonlyMap<string, C>
  /** Ancestor levels of the part's lists, by their last axis. */
  readonly prefixes: ReadonlyMap<string, TreePrefix<C>>
}

export interface Part<C, V = C> {
  readonly part: PartInstance
  readonly storage: Storage<C>
  /** In position order; the fill value at empty positions. */
  readonly values: V
  /** The positions of the tensor's entries; `null` if only the arrays are known. */
  readonly entries: PlacedEntries<C> | null
  /** Arrays that the inverse map loads, and its mask, by name. */
  readonly tables: ReadonlyMap<string, C>
  readonly measured: ReadonlyMap<string, number>
}

/**
 * Coordinates in a part's format; unless proved, each is checked to be in range, and restored by the inverse. @throws
 * SptError `format/map-range`, `format/not-inverse`, `format/map-overflow`, `format/claim`, and as `evaluateQueries` and
 * `evaluateSort`
 */
export function* remapCoordinates<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved = { inverse: false, range: false },
): Coroutine<Remapped<C>> {
  const { instance } = part
  const places = new Map<string, C>()
  const scope = { places, ...context }
  const tables = new Map<string, C>()
  for (const table of instance.tables) {
    const list = table.kind === 'list' ? context.lists.get(table.source) : undefined
    if (!list) continue
    tables.set(table.name, list)
    // Maps load the list by its name in the format, which may differ from its name among the operands.
    frame.tables.set(table.name, list)
    frame.lists.set(table.name, givenList(context.given, table.source))
  }
  const evaluated = new Set<string>()
  for (const sort of instance.sorts) {
    const isComputed = sort.of.kind !== 'var' || sort.of.name !== sort.dim
    if (isComputed) {
      const needed = neededBy(sort.of, instance.queries).filter((q) => !evaluated.has(q.name))
      for (const q of needed) evaluated.add(q.name)
      yield* evaluateQueries(frame, needed, scope)
      yield* checkExpressions(frame, [sort.of], context.dims, instance.queries)
      frame.engine.compute(frame, sort.dim, sort.of)
    }
    const { place: inverse, at: permutation } = yield* evaluateSort(frame, sort, scope)
    if (isComputed) frame.drop(sort.dim)
    places.set(sort.place, inverse)
    tables.set(sort.at, permutation)
  }
  const remaining = instance.queries.filter((q) => !evaluated.has(q.name))
  yield* evaluateQueries(frame, remaining, scope)
  const expressions = [...instance.map, ...instance.lists.map((l) => l.coordinate)]
  yield* checkExpressions(frame, expressions, context.dims, instance.queries)
  frame.engine.release(...places.values())
  const ranks = ranksFromQueries(frame, instance)
  const { coordinates, prefixes } = yield* applyMap(frame, part, context, { tables, ranks, proved })
  const tablesByName = inverseTables(instance, tables, frame.sizes, context.given)
  if (!instance.claims.every((c) => c.follows))
    yield* checkFilled(frame, { instance, dims: context.dims, coordinates, tables: tablesByName })
  const deferredMaps = instance.map.filter((_, k) => frame.deferred.has(`@${instance.order[k]}`))
  const results = [...coordinates.values(), ...ranks.values(), ...deferredMaps]
  const usedNames = new Set(results.flatMap((e) => [...freeVars(e)]))
  for (const { name } of instance.queries) if (!usedNames.has(name)) frame.drop(name)
  return { coordinates, ranks, tables, prefixes }
}

/** The rank of the coordinate on each axis in its segment, where a query of the map provides it. */
function ranksFromQueries<C extends Column>(
  frame: Frame<C>,
  { axes, order, map, queries }: FormatInstance,
): ReadonlyMap<string, Expr> {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const mapExpr = (name: string): Expr => map[order.indexOf(name)]!
  return new Map(
    axes.filter(hasIndices).flatMap(({ name }) => {
      const ancestors = chainTo(byName, name).slice(0, -1)
      const rank = rankFrom([mapExpr(name)], ancestors.map(mapExpr), queries, frame.isPositive)
      return rank ? [[name, rank] as const] : []
    }),
  )
}

function* applyMap<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  { dims, given }: Context<C>,
  results: { tables: Map<string, C>; ranks: ReadonlyMap<string, Expr>; proved: Proved },
): Coroutine<Pick<Remapped<C>, 'coordinates' | 'prefixes'>> {
  const { tables, ranks, proved } = results
  const { engine } = frame
  const { instance } = part
  const { lists } = instance
  const coordinates = new Map<string, Expr>()
  for (const [k, name] of instance.order.entries())
    coordinates.set(name, engine.materialize(frame, `@${name}`, instance.map[k]!, proved.range))
  const listCoordinates = new Map(
    lists.map((l) => [l.axis.name, engine.materialize(frame, `@${l.axis.name}`, l.coordinate)]),
  )
  const extents = yield* extentsOf(frame, instance, coordinates)
  if (proved.range)
    for (const [name, extent] of extents) frame.bounds.set(`@${name}`, [0, Math.max(0, extent - 1)])
  const outOfExtent = ([name, e]: readonly [string, Expr]): readonly Expr[] => {
    const extent = extents.get(name)
    const isNegative = binary('lt', e, int(0))
    return extent === undefined
      ? [isNegative]
      : [isNegative, ge(e, frame.bindSize(extent, `@extent ${name}`))]
  }
  const context = { frame, part, coordinates, extents, restored: [], dims }
  const ancestors = new Set(lists.flatMap((l) => l.under))
  // Lists are assembled from coordinates, which must be within their extents.
  if (lists.length > 0 && !proved.range) {
    const coordinatesOfLists = [
      ...[...coordinates].filter(([name]) => ancestors.has(name)),
      ...listCoordinates,
    ].flatMap(outOfExtent)
    const [violation = -1] = yield* engine.findFirst(frame, [
      coordinatesOfLists.reduce((a, b) => binary('or', a, b)),
    ])
    if (violation >= 0)
      yield* rejectOutOfExtent(
        { ...context, coordinates: new Map([...coordinates, ...listCoordinates]) },
        violation,
      )
  }
  const prefixes = yield* assembleLists(
    frame,
    instance,
    new Map([...coordinates, ...listCoordinates]),
    ranks,
    tables,
  )
  const tablesByName = inverseTables(instance, tables, frame.sizes, given)
  bindTables(frame, tablesByName)
  const inFrame = (e: Expr): Expr =>
    guardLoads(frame, substitute(rewriteListLoads(frame, e, lists, listPosition), coordinates), tablesByName)
  const restored = instance.inverse.map(inFrame)
  const overAxes = { extents, inFrame }
  yield* checkInverseWords(frame, instance.inverse, overAxes)
  const reads = uncheckedReads(frame, instance.inverse, overAxes)
  // Maps fit 32 bits, and so do inverses of coordinates on the axes; composed bounds may be weaker.
  for (const e of [...restored, ...reads.map((r) => r.at)]) frame.rangeChecked.add(e)
  const outOfExtents = [...coordinates].flatMap(outOfExtent)
  const notRestored = [
    ...restored.map((e, k) => binary('ne', e, variable(dims[k]!.name))),
    ...listConditions(instance.inverse, lists).map((e) => not(inFrame(e))),
  ]
  const checks = [
    ...(proved.range ? [] : [{ violations: outOfExtents, reject: rejectOutOfExtent }]),
    ...reads.map((listRead) => ({
      violations: [listRead.isOutside],
      reject: (_: unknown, entry: number) => rejectRead(frame, listRead, labelByDims(dims), entry),
    })),
    ...(proved.inverse && restored.every((e) => engine.fits(frame, e))
      ? []
      : [{ violations: notRestored, reject: rejectNotInverse }]),
  ]
  if (checks.length === 0) return { coordinates, prefixes }
  const violation = yield* engine.findFirst(
    frame,
    checks.map(({ violations: any }) => any.reduce((a, b) => binary('or', a, b))),
  )
  for (const [k, { reject: refuse }] of checks.entries())
    if (violation[k]! >= 0) yield* refuse({ ...context, restored }, violation[k]!)
  return { coordinates, prefixes }
}

/** Extents by axis; those to be measured are 1 + the largest coordinate. */
function* extentsOf<C extends Column>(
  frame: Frame<C>,
  instance: FormatInstance,
  coordinates: ReadonlyMap<string, Expr>,
): Coroutine<ReadonlyMap<string, number>> {
  const openNames = new Set(instance.measured.map((m) => m.name))
  const measured = new Map<string, number>()
  for (const { name, extent } of instance.axes) {
    if (extent.kind !== 'var' || frame.isKnown(extent) || !openNames.has(extent.name)) continue
    const [, maximum] = yield* frame.engine.bounds(frame, add(coordinates.get(name)!, int(1)))
    measured.set(extent.name, Math.max(measured.get(extent.name) ?? 0, maximum))
  }
  for (const [name, value] of measured) frame.sizes.set(name, value)
  return new Map(
    [...instance.axes, ...instance.lists.map((l) => l.axis)].flatMap(({ name, extent }) =>
      frame.isKnown(extent) ? [[name, frame.size(extent)] as const] : [],
    ),
  )
}
