/**
 * Ranks that follow from known ranks: the ranks of the same tuples in the same groups, or in equal chunks of these
 * groups. A remainder then replaces a sort of all entries.
 */
import { type Expr, mod, variable } from '../../ir/expressions/expr.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { operandsOf, type Query, sourceOf } from '../../ir/formats/queries.ts'

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
