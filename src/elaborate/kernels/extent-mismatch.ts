/** Extents that are provably different, which make an index an error. */

import { linear, minus } from '../../analysis/integers/linear.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'

/** Returns whether the extents are two different sizes, or the range is longer by a constant. */
export function tooLong(range: Expr, dimension: Expr): boolean {
  if (sameExpr(range, dimension)) return false
  if (range.kind === 'var' && dimension.kind === 'var') return true
  const { terms, constant } = minus(linear(range), linear(dimension))
  return terms.size === 0 && constant > 0
}
