/** Sort elision: orders implied by the known order of the entries, so that nothing needs to be checked. */
import type { Expr } from '../ir/expr.ts'
import { keyOf } from '../ir/structural-equality.ts'

/** An order of entries on a device: lexicographic in these expressions. */
export type Order = readonly Expr[]

/** The column `name` ascends with `of` where `by` is equal. */
export interface Rising {
  readonly by: readonly Expr[]
  readonly of: readonly Expr[]
}

/** The number of leading `keys` by which the entries are known to be lexicographically sorted. */
export function sortedPrefix(
  keys: readonly Expr[],
  order: Order,
  rising: ReadonlyMap<string, Rising>,
  positive: (size: Expr) => boolean,
): number {
  const same = (a: Expr | undefined, b: Expr): boolean =>
    a !== undefined && (a === b || keyOf(a) === keyOf(b))
  /** Keys of `order` before this one are among `keys`; monotone functions of one of them ascend with it. */
  let at = 0
  for (const [n, key] of keys.entries()) {
    let x = key
    while (!same(order[at], x) && x.kind === 'binary' && x.op === 'div' && positive(x.b)) x = x.a
    if (same(order[at], x)) {
      if (x === key) at++
      continue
    }
    const by = x.kind === 'var' ? rising.get(x.name) : undefined
    const group = by && [...by.by, ...by.of]
    if (!by || by.by.length !== at || !group?.every((e, k) => same(order[k], e))) return n
  }
  return keys.length
}
