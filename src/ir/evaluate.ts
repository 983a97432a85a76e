/** Values of expressions over parameters: grid sizes, buffer lengths, extents. */
import { InternalError } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'

/** Evaluates an integer expression over sizes; x / 0 is 0, as in kernels. */
export function evaluate(e: Expr, params: ReadonlyMap<string, number>): number {
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var': {
      const v = params.get(e.name)
      if (v === undefined) throw new InternalError(`no value for ${e.name}`)
      return v
    }
    case 'binary': {
      const a = evaluate(e.a, params)
      const b = evaluate(e.b, params)
      switch (e.op) {
        case 'add':
          return a + b
        case 'sub':
          return a - b
        case 'mul':
          return a * b
        case 'div':
          return b === 0 ? 0 : Math.floor(a / b)
        case 'quo':
          return b === 0 ? 0 : Math.trunc(a / b)
        case 'mod':
          return b === 0 ? 0 : a - b * Math.floor(a / b)
        case 'rem':
          return b === 0 ? 0 : a % b
        case 'min':
          return Math.min(a, b)
        case 'max':
          return Math.max(a, b)
        case 'lt':
          return a < b ? 1 : 0
        case 'le':
          return a <= b ? 1 : 0
        case 'gt':
          return a > b ? 1 : 0
        case 'ge':
          return a >= b ? 1 : 0
        case 'eq':
          return a === b ? 1 : 0
        case 'ne':
          return a !== b ? 1 : 0
        case 'and':
          return a !== 0 && b !== 0 ? 1 : 0
        case 'or':
          return a !== 0 || b !== 0 ? 1 : 0
      }
      break
    }
    case 'unary':
      return e.op === 'neg' ? -evaluate(e.x, params) : evaluate(e.x, params) === 0 ? 1 : 0
    case 'select':
      return evaluate(e.cond, params) !== 0 ? evaluate(e.then, params) : evaluate(e.else, params)
    case 'cast':
      return evaluate(e.x, params)
    default:
      break
  }
  throw new InternalError(`${e.kind} cannot be evaluated on the host`)
}
