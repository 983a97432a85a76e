/** Lists of expressions without duplicates. */
import type { Expr } from './expr.ts'
import { keyOf } from './structural-equality.ts'

/** The expressions without those that are equal to a later one, in order of the first of equal ones. */
export const distinctExprs = (list: readonly Expr[]): readonly Expr[] => [
  ...new Map(list.map((e) => [keyOf(e), e])).values(),
]
