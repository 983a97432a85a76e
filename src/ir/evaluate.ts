/** Values of expressions over parameters: grid sizes, buffer lengths, extents. */
import { InternalError } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'
import { perExpr } from './expr-tree.ts'
import { foldCompare, foldInt } from './fold.ts'
import { mathOf } from './numeric.ts'
import { isBitFn } from './ops.ts'

/** Evaluates an integer expression over sizes; x / 0 is 0, as in kernels. */
export const evaluate = (e: Expr, params: ReadonlyMap<string, number>): number =>
  perExpr<number>((x, of) => numberOf(x, of, params))(e)

function numberOf(e: Expr, of: (e: Expr) => number, params: ReadonlyMap<string, number>): number {
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var': {
      const v = params.get(e.name)
      if (v === undefined) throw new InternalError(`no value for ${e.name}`)
      return v
    }
    case 'binary': {
      const a = of(e.a)
      const b = of(e.b)
      // Only a division by 0 folds to nothing.
      return Number(foldInt(e.op, a, b) ?? foldCompare(e.op, a, b) ?? 0)
    }
    case 'unary':
      return e.op === 'neg' ? -of(e.x) : of(e.x) === 0 ? 1 : 0
    case 'select':
      return of(e.cond) !== 0 ? of(e.then) : of(e.else)
    case 'cast':
      return of(e.x)
    case 'call': {
      const [x = 0, y = 0] = e.args.map((a) => of(a))
      if (isBitFn(e.fn)) return mathOf(e.fn)(x, y)
      if (e.fn === 'abs') return Math.abs(x) | 0
      if (e.fn === 'sign') return Math.sign(x)
      break
    }
    default:
      break
  }
  throw new InternalError(`${e.kind} cannot be evaluated on the host`)
}
