/** What is known of the names in maps and conditions of formats. */
import { Facts } from '../../analysis/integers/facts.ts'
import { linear, linearKey, shift } from '../../analysis/integers/linear.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { add, type Expr, int, variable } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { FormatInstance, Query } from '../../ir/format.ts'

/** Coordinates within their extents, which exist: an extent is 1 at least. */
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
  for (const q of queries) addQuery(q, facts, extents, part)
  const last = [...extents.values()].map((e) => shift(facts.form(e), -1))
  const known = facts.assuming(last.filter((f) => f.terms.size > 0))
  if (part) addTables(part, known)
  return known
}

function addQuery(
  q: Query,
  facts: Facts,
  extents: ReadonlyMap<string, Expr>,
  part: FormatInstance | undefined,
): void {
  const name = variable(q.name)
  const end = endOf(q, extents, part)
  if (q.kind === 'find') facts.atLeast(variable(`${q.list}_segments`), 0)
  if (end) facts.isBelow(name, end)
  if (q.kind !== 'value' && (end || q.kind !== 'place')) facts.atLeast(name, q.kind === 'count' ? 1 : 0)
}

/** What a query is below, where it is known. */
function endOf(
  q: Query,
  extents: ReadonlyMap<string, Expr>,
  part: FormatInstance | undefined,
): Expr | undefined {
  switch (q.kind) {
    case 'count':
    case 'rank': {
      // There are so many different values at most: of what depends on one coordinate, as many as of that.
      const [dim, ...others] = new Set(q.of.flatMap((e) => [...freeVars(e)]))
      const most = others.length === 0 ? extents.get(dim!) : undefined
      return q.kind === 'count' ? most && add(most, int(1)) : most
    }
    case 'held':
      return int(2)
    case 'place':
      return extents.get(part?.sorts.find((s) => s.place === q.sort)?.dim ?? '')
    case 'find':
      return variable(`${q.list}_segments`)
    default:
      return undefined
  }
}

/** The element of a sort at the place of a coordinate is that coordinate; a list encloses what is found in it. */
function addTables(part: FormatInstance, facts: Facts): void {
  for (const t of part.tables) {
    const sort = t.of === 'sort' ? part.sorts.find((s) => s.at === t.source) : undefined
    const at = (q: Query): string => linearKey(linear(variable(q.name)))
    const places = part.queries.flatMap((q) =>
      q.kind === 'place' && sort?.place === q.sort && facts.provesWithin(q.of, t.fill)
        ? [[at(q), q.of] as const]
        : [],
    )
    const found = part.queries.flatMap((q) =>
      q.kind === 'find' && t.of === 'list' && q.list === t.source ? [[at(q), q.of] as const] : [],
    )
    facts.table(t.name, { fill: t.fill, places: new Map(places), found: new Map(found) })
  }
}
