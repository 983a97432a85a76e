/** Sort elision: orders that the known order of the entries implies, so that no column needs to be read. */
import type { Expr } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'

/** An order of entries: lexicographic in these expressions. */
export type Order = readonly Expr[]

/** A column that ascends with `of` among entries with the same `by`. */
export interface Monotone {
  readonly column: readonly Expr[]
  readonly of: readonly Expr[]
}

/** The number of leading `keys` by which the entries are known to be lexicographically sorted. */
export function sortedPrefix(
  keys: readonly Expr[],
  order: Order,
  monotone: ReadonlyMap<string, Monotone>,
  positive: (size: Expr) => boolean,
): number {
  const isSame = (a: Expr | undefined, b: Expr): boolean =>
    a !== undefined && (a === b || keyOf(a) === keyOf(b))
  /**
   * Number of expressions of `order` that `keys` have covered; a monotone function of a covered expression is
   * in order too.
   */
  let prefix = 0
  for (const [n, key] of keys.entries()) {
    let x = key
    while (!isSame(order[prefix], x) && x.kind === 'binary' && x.op === 'div' && positive(x.b)) x = x.a
    if (isSame(order[prefix], x)) {
      if (x === key) prefix++
      continue
    }
    const column = x.kind === 'var' ? monotone.get(x.name) : undefined
    const groupOrder = column && [...column.column, ...column.of]
    if (!column || column.column.length !== prefix || !groupOrder?.every((e, k) => isSame(order[k], e)))
      return n
  }
  return keys.length
}
