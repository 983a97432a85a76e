/** When two extents are provably not the same: what makes an index a mistake. */

import { linearOf } from '../analysis/integers/symbolic-linear.ts'
import { type Expr, sub } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import { sameExpr } from '../ir/keys.ts'

/** Two different sizes, or a range that is longer by a constant. */
export function tooLong(range: Expr, dimension: Expr): boolean {
  if (sameExpr(range, dimension)) return false
  if (range.kind === 'var' && dimension.kind === 'var') return true
  const all = new Set([...freeVars(range), ...freeVars(dimension)])
  const difference = linearOf(sub(range, dimension), all)
  return (
    difference !== null &&
    difference.terms.size === 0 &&
    difference.rest.kind === 'const' &&
    difference.rest.value > 0
  )
}
