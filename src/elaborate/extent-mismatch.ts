/** When two extents are provably not the same: what makes an index a mistake. */

import { linear, minus } from '../analysis/integers/linear.ts'
import type { Expr } from '../ir/expr.ts'
import { sameExpr } from '../ir/structural-equality.ts'

/** Two different sizes, or a range that is longer by a constant. */
export function tooLong(range: Expr, dimension: Expr): boolean {
  if (sameExpr(range, dimension)) return false
  if (range.kind === 'var' && dimension.kind === 'var') return true
  const { terms, constant } = minus(linear(range), linear(dimension))
  return terms.size === 0 && constant > 0
}
