/** Dependence of a format's expressions on old axes, by name, through queries. */
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { determiningExprs, operandsOf, type Query } from '../../ir/formats/queries.ts'

type Known = ReadonlyMap<string, ReadonlySet<string>>

// A format of many parts evaluates the same queries for each node of its tree.
const known = new WeakMap<readonly Query[], Map<string, Known>>()

/**
 * Returns the coordinates that determine the value, given the set of stored coordinates: a count or sort depends on its
 * groups, a rank also on the ranked tuple, and a value, or an order by values, on all coordinates.
 */
export const dependsOn = (e: Expr, queries: readonly Query[], dims: readonly string[]): ReadonlySet<string> =>
  new Set(through(e, decisions(queries, dims)))

const through = (e: Expr, by: Known): string[] => [...freeVars(e)].flatMap((v) => [...(by.get(v) ?? [])])

/** Returns the coordinates that determine each dimension and query. */
function decisions(queries: readonly Query[], dims: readonly string[]): Known {
  const of = known.get(queries) ?? new Map<string, Known>()
  known.set(queries, of)
  const key = dims.join(' ')
  const found = of.get(key)
  if (found) return found
  const out = new Map<string, ReadonlySet<string>>(dims.map((d) => [d, new Set([d])]))
  for (const q of queries)
    out.set(q.name, new Set(determiningExprs(q)?.flatMap((e) => through(e, out)) ?? dims))
  of.set(key, out)
  return out
}

/** Returns the queries that an expression needs, each after those that it uses. */
export const neededBy = (e: Expr, queries: readonly Query[]): readonly Query[] =>
  reachedFrom(e, queries, operandsOf)

/**
 * Returns the queries whose results determine the value, given the set of stored coordinates: for a count, the queries
 * of its groups.
 */
export const decidedBy = (e: Expr, queries: readonly Query[]): readonly Query[] =>
  reachedFrom(e, queries, (q) => determiningExprs(q) ?? [])

function reachedFrom(
  e: Expr,
  queries: readonly Query[],
  next: (q: Query) => readonly Expr[],
): readonly Query[] {
  const needed = new Set(freeVars(e))
  for (const q of queries.toReversed())
    if (needed.has(q.name)) for (const x of next(q)) for (const v of freeVars(x)) needed.add(v)
  return queries.filter((q) => needed.has(q.name))
}
