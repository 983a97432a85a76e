/** Arguments of steps: arithmetic over the parameters of the schedule and the constants of parts. */

import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { add, ceildiv, div, int, max, min, mod, mul, sub, variable } from '../../ir/expressions/expr.ts'
import { foldInt } from '../../ir/values/numeric.ts'

/** The values of the names that arguments of steps may use. */
export interface Known {
  readonly values: ReadonlyMap<string, number>
  /** Returns the value of a constant of a part, such as `p.width`. */
  readonly constant: (e: Ast.Field) => number
}

/** Returns the value of an integer expression over schedule parameters. Throws `schedule/argument`. */
export function integer(e: Ast.Expr, known: Known): number {
  const value = arithmetic(e, known)
  if (!Number.isSafeInteger(value)) bad(e, `it is ${nameText(value)}`)
  return value
}

/**
 * Returns the value of an expression over schedule parameters. With `real`, a quotient is rounded down only if both
 * operands are integers as written. Throws `schedule/argument`.
 */
export function arithmetic(e: Ast.Expr, known: Known, real = false): number {
  switch (e.kind) {
    case 'number':
      return e.value
    case 'name': {
      const v = known.values.get(e.name)
      return v === undefined ? bad(e, `${e.name} is no parameter of the schedule`) : v
    }
    case 'unary':
      return e.op === 'neg' ? -arithmetic(e.x, known, real) : bad(e, 'it is a condition')
    case 'binary': {
      const a = arithmetic(e.a, known, real)
      const b = arithmetic(e.b, known, real)
      if ((e.op === 'div' || e.op === 'mod') && b === 0) return bad(e, 'it divides by 0')
      if (real && e.op === 'div' && (isFraction(e.a) || isFraction(e.b))) return a / b
      return foldInt(e.op, a, b) ?? bad(e, 'it is a condition')
    }
    case 'call': {
      const xs = e.args.map((x) => arithmetic(x, known, real))
      if (e.fn.name === 'min') return Math.min(...xs)
      if (e.fn.name === 'max') return Math.max(...xs)
      if (e.fn.name === 'ceildiv' && xs.length === 2 && xs[1] !== 0) return Math.ceil(xs[0]! / xs[1]!)
      return bad(e, `${e.fn.name} is not for arguments of steps`)
    }
    case 'field':
      return known.constant(e)
    default:
      return bad(e, 'it is no integer arithmetic')
  }
}

/** Returns an integer expression over sizes, with numbers in place of parameters. Throws `schedule/argument`. */
export function overSizes(e: Ast.Expr, known: Known): Expr {
  switch (e.kind) {
    case 'name':
      return known.values.has(e.name) ? int(known.values.get(e.name)!) : variable(e.name)
    case 'unary':
      return e.op === 'neg' ? sub(int(0), overSizes(e.x, known)) : bad(e, 'it is a condition')
    case 'binary': {
      const { op } = e
      if (op !== 'add' && op !== 'sub' && op !== 'mul' && op !== 'div' && op !== 'mod')
        return bad(e, 'it is a condition')
      return { add, sub, mul, div, mod }[op](overSizes(e.a, known), overSizes(e.b, known))
    }
    case 'call': {
      const [first, ...rest] = e.args.map((x) => overSizes(x, known))
      const fn = new Map([
        ['min', min],
        ['max', max],
        ['ceildiv', ceildiv],
      ]).get(e.fn.name)
      return fn && first ? rest.reduce(fn, first) : bad(e, `${e.fn.name} is not for arguments of steps`)
    }
    default:
      return int(integer(e, known))
  }
}

/** Returns the capacity per part; a single expression, not a list, if it applies to all parts. */
export function roomOf(positions: readonly Ast.Expr[], known: Known): Expr | readonly Expr[] {
  const all = positions.map((e) => overSizes(e, known))
  return all.length === 1 ? all[0]! : all
}

function isFraction(e: Ast.Expr): boolean {
  switch (e.kind) {
    case 'number':
      return e.float
    case 'unary':
      return isFraction(e.x)
    case 'binary':
      return isFraction(e.a) || isFraction(e.b)
    case 'call':
      return e.args.some(isFraction)
    default:
      return false
  }
}

function bad(e: { readonly span: Span }, why: string): never {
  return failAt('schedule/argument', e.span, {
    message: `an argument of a step is not an integer: ${why}`,
    expected: 'integers, parameters of the schedule, + - * / %, min, max, ceildiv',
    hint: 'write a number',
  })
}
