/** What divides integer expressions. */
import type { Expr } from '../../ir/expr.ts'
import { perExpr } from '../../ir/expr-tree.ts'

export const gcd = (a: number, b: number): number => (b === 0 ? Math.abs(a) : gcd(b, a % b))

/**
 * The largest known divisor of integer expressions; 0 where one is always 0. `factor` says what divides variables and other
 * leaves (1 where nothing is known).
 */
export const divisorsBy = (factor: (leaf: Expr) => number): ((e: Expr) => number) =>
  perExpr<number>((e, of) => {
    switch (e.kind) {
      case 'const':
        return Math.abs(e.value)
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
            // What is short of a whole is cut off.
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

/** `e`, or what a rest of less than `by` is added to: of multiples of `by`, division cuts that off. */
const withoutRest = (e: Expr, by: number): Expr =>
  e.kind === 'binary' && e.op === 'add' && e.b.kind === 'const' && e.b.value >= 0 && e.b.value < by ? e.a : e
