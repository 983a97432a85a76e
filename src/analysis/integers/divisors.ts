/** Divisors of integer expressions. */

import type { Expr } from '../../ir/expressions/expr.ts'
import { isFreeCast, perExpr } from '../../ir/expressions/expr-tree.ts'

/** Returns the greatest common divisor; 1 if a number is not exact (NaN). */
export const gcd = (a: number, b: number): number =>
  Number.isNaN(a + b) ? 1 : b === 0 ? Math.abs(a) : gcd(b, a % b)

/**
 * Returns a function to the largest known divisor of an integer expression; 0 if it is always 0. `factor` returns a
 * divisor of variables and other leaves (1 if unknown).
 */
export const divisorsBy = (factor: (leaf: Expr) => number): ((e: Expr) => number) =>
  perExpr<number>((e, of) => {
    switch (e.kind) {
      case 'const':
        return Math.abs(e.value)
      case 'cast':
        return isFreeCast(e) ? of(e.x) : 1
      case 'select':
        return gcd(of(e.then), of(e.else))
      case 'binary':
        switch (e.op) {
          case 'mul':
            return of(e.a) * of(e.b)
          case 'add':
          case 'sub':
          case 'min':
          case 'max':
          case 'mod':
          case 'rem':
            return gcd(of(e.a), of(e.b))
          case 'div':
          case 'quo': {
            const by = e.b.kind === 'const' ? e.b.value : 0
            if (by <= 0) return 1
            // The division cuts off a remainder.
            const whole = of(withoutRest(e.a, by))
            return whole % by === 0 ? whole / by : 1
          }
          default:
            return 1
        }
      default:
        return Math.max(1, factor(e))
    }
  })

/** Returns `e` without an added constant below `by`, which does not change the quotient of a multiple of `by`. */
const withoutRest = (e: Expr, by: number): Expr =>
  e.kind === 'binary' && e.op === 'add' && e.b.kind === 'const' && e.b.value >= 0 && e.b.value < by ? e.a : e
