/**
 * Sort elision: orders that follow from the one that entries are known to stand in, so that nothing needs to be looked
 * at.
 */
import type { Expr } from '../ir/expr.ts'
import { keyOf } from '../ir/structural-equality.ts'

/** An order on a device's entries: lexicographic in these expressions. */
export type Order = readonly Expr[]

/** `name` rises with `of` where `by` is equal. */
export interface Rising {
  readonly by: readonly Expr[]
  readonly of: readonly Expr[]
}

/** How many of `keys` the entries are certainly in lexicographic order of. */
export function sortedPrefix(
  keys: readonly Expr[],
  order: Order,
  rising: ReadonlyMap<string, Rising>,
  positive: (size: Expr) => boolean,
): number {
  const same = (a: Expr | undefined, b: Expr): boolean =>
    a !== undefined && (a === b || keyOf(a) === keyOf(b))
  /** Keys of `order` before this one are among `keys`; what is made of one of them rises with it. */
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
