/** Facts about the names in maps and conditions of formats. */
import { Facts } from '../../analysis/integers/facts.ts'
import { linear, linearKey, shift } from '../../analysis/integers/linear.ts'
import { placeKey } from '../../analysis/integers/normal-forms.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'
import { extentOf } from '../../ir/formats/list-extents.ts'
import { boundsOfQuery, declarationOf, operandsOf, type Query, sourceOf } from '../../ir/formats/queries.ts'

/** Facts about coordinates: they are within their extents, and exist, so extents are at least 1. */
export function factsOf(
  over: readonly StoredAxis[],
  queries: readonly Query[],
  part?: FormatInstance,
): Facts {
  const facts = new Facts()
  const extents = new Map(over.map((a) => [a.name, a.extent]))
  for (const e of [...extents.values(), ...(part?.axes ?? []).map((a) => a.extent)])
    for (const v of freeVars(e)) facts.atLeast(variable(v), 0)
  for (const [name, extent] of extents) {
    if (extent.kind === 'var') facts.atLeast(extent, 1)
    facts.coordinate(variable(name), extent)
  }
  for (const q of queries) addQueryFacts(q, queries, facts, extents, part)
  // Longer lists are rejected when they are assembled.
  for (const { axis, position } of part?.lists ?? [])
    if (position !== null) facts.isBelow(variable(position), axis.width)
  const lastCoordinates = [...extents.values()].map((e) => shift(facts.form(e), -1))
  const assumed = facts.assuming(lastCoordinates.filter((f) => f.terms.size > 0))
  if (part) addTableFacts(part, assumed)
  return assumed
}

function addQueryFacts(
  q: Query,
  queries: readonly Query[],
  facts: Facts,
  extents: ReadonlyMap<string, Expr>,
  part: FormatInstance | undefined,
): void {
  const name = variable(q.name)
  const { least, end } = boundsOfQuery(q, {
    distinctTuples(of) {
      // Upper bound of distinct values: for an expression of one coordinate, the number of that coordinate's values.
      const [dim, ...otherDims] = new Set(of.flatMap((e) => [...freeVars(e)]))
      return otherDims.length === 0 ? extents.get(dim!) : undefined
    },
    list(list, of) {
      const segments = variable(segmentsOf(list))
      facts.atLeast(segments, 0)
      // Lists end with the extent of coordinates; there is no segment beyond.
      if (extentOf(of, extents, { queries, sorts: part?.sorts ?? [] }))
        return { least: int(0), end: segments }
      return facts.nonNegative(of) ? { least: int(0) } : {}
    },
    sort(place) {
      const end = part?.sorts.find((s) => s.place === place)?.extent
      return end ? { least: int(0), end } : {}
    },
  })
  if (end) facts.isBelow(name, end)
  if (least?.kind === 'const') facts.atLeast(name, least.value)
}

/**
 * Adds facts about tables: the element of a sort or list at a coordinate's place is that coordinate; a found segment's
 * boundaries enclose the value.
 */
function addTableFacts(part: FormatInstance, facts: Facts): void {
  for (const t of part.tables) {
    const { kind: of } = t
    if (of === 'positions') continue
    const source = of === 'sort' ? part.sorts.find((s) => s.at === t.source)?.place : t.source
    const sourceQueries = part.queries.filter((q) => source !== undefined && sourceOf(q, of) === source)
    const operandsByPosition = (inverse: 'places' | 'found') =>
      sourceQueries
        .filter((q) => declarationOf(q).inverse === inverse)
        .flatMap((q) => operandsOf(q).map((of) => [linearKey(linear(variable(q.name))), of] as const))
    const places = operandsByPosition('places').filter(([, of]) => facts.provesWithin(of, t.fill))
    const found = operandsByPosition('found')
    facts.table(t.name, { fill: t.fill, places: new Map(places), found: new Map(found) })
  }
  for (const { axis, under, coordinate, position } of part.lists) {
    if (position === null || !facts.provesWithin(coordinate, axis.extent)) continue
    const index = [...under.map((a) => part.map[part.order.indexOf(a)]!), variable(position)]
    const places = new Map([[placeKey(index.map((e) => facts.form(e))), coordinate]])
    facts.table(axis.name, { fill: axis.extent, places, found: new Map() })
  }
}
