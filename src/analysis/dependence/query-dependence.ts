/** Dependence of a format's expressions on old axes, by name, through queries. */
import { type Expr, mod, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { determiningExprs, operandsOf, type Query, sourceOf } from '../../ir/formats/queries.ts'

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

// Ranks that follow from known ranks: the ranks of the same tuples in the same groups, or in equal chunks of
// these groups. A remainder then replaces a sort of all entries.

/**
 * Returns the number of different smaller tuples `of` among coordinates with the same `by`, over the `known` queries;
 * null if it does not follow from them. `rank(j by i) / s` divides a group into chunks of s, in which ranks begin at 0
 * again.
 * @param known ranks, and places in sorts @param positive whether an expression is the same for all coordinates, and at
 * least 1
 */
export function rankFrom(
  of: readonly Expr[],
  by: readonly Expr[],
  known: readonly Query[],
  positive: (size: Expr) => boolean,
): Expr | null {
  const grouping = (e: Expr): string => keyOf(unsorted(e, known))
  const keys = by.map(grouping)
  const asked = of.map(keyOf).join(' ')
  for (const q of known) {
    if (q.kind !== 'rank' || q.of.map(keyOf).join(' ') !== asked) continue
    const groups = q.by.map(grouping)
    if (groups.some((k) => !keys.includes(k))) continue
    const [share, ...others] = by.filter((_, k) => !groups.includes(keys[k]!))
    if (!share) return variable(q.name)
    const isShare =
      share.kind === 'binary' && share.op === 'div' && share.a.kind === 'var' && share.a.name === q.name
    if (isShare && others.length === 0 && positive(share.b)) return mod(variable(q.name), share.b)
  }
  return null
}

/**
 * Returns the sorted expression in place of a place: places in a sort are a permutation, so both give the same groups.
 */
function unsorted(e: Expr, known: readonly Query[]): Expr {
  const place = e.kind === 'var' && known.find((q) => q.name === e.name && sourceOf(q, 'sort') !== undefined)
  return place ? unsorted(operandsOf(place)[0]!, known) : e
}
