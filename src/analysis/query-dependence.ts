/** What an expression of a format depends on, through queries: old axes by name. */
import type { Expr } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import { decidersOf, operandsOf, type Query } from '../ir/queries.ts'

type Known = ReadonlyMap<string, ReadonlySet<string>>

// A format of many parts asks for the same queries once for each node of its tree.
const known = new WeakMap<readonly Query[], Map<string, Known>>()

/**
 * The coordinates that decide the value, the stored coordinates as a whole being given: a count or sort depends
 * on what it is by, a rank also on what is ranked, the value and what is ordered by it on all of them.
 */
export const dependsOn = (e: Expr, queries: readonly Query[], dims: readonly string[]): ReadonlySet<string> =>
  new Set(through(e, decisions(queries, dims)))

const through = (e: Expr, by: Known): string[] => [...freeVars(e)].flatMap((v) => [...(by.get(v) ?? [])])

/** What each dimension and query is decided by. */
function decisions(queries: readonly Query[], dims: readonly string[]): Known {
  const of = known.get(queries) ?? new Map<string, Known>()
  known.set(queries, of)
  const key = dims.join(' ')
  const found = of.get(key)
  if (found) return found
  const out = new Map<string, ReadonlySet<string>>(dims.map((d) => [d, new Set([d])]))
  for (const q of queries) out.set(q.name, new Set(decidersOf(q)?.flatMap((e) => through(e, out)) ?? dims))
  of.set(key, out)
  return out
}

/** The queries that an expression needs, in order; each comes after those that it uses. */
export const neededBy = (e: Expr, queries: readonly Query[]): readonly Query[] =>
  reachedFrom(e, queries, operandsOf)

/** Those whose answers decide its value, the stored coordinates as a whole being given: a count's are those that it is by. */
export const decidedBy = (e: Expr, queries: readonly Query[]): readonly Query[] =>
  reachedFrom(e, queries, (q) => decidersOf(q) ?? [])

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
