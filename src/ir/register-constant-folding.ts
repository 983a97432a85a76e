/**
 * Constant folding with the semantics of registers. Expressions of constants alone, as registers hold their values:
 * integers wrapped, floats rounded to the type that they are computed in. Constructors fold the others already; these
 * they leave, since a place must not wrap and a half is rounded later. A target that computes them itself may refuse what
 * overflows.
 */
import { computeType } from './dtype.ts'
import { inRegisters } from './evaluate.ts'
import { type Const, constant, type Expr } from './expr.ts'
import { children, perExpr } from './expr-tree.ts'

/** The value of an expression in a register, where it depends on nothing; it is of `computeType`. */
export function constantsIn(): (e: Expr) => Const | undefined {
  const registers = perExpr<number | undefined>((e, of) => {
    if (e.kind === 'const') return e.value
    const xs = children(e).map(of)
    if (xs.length === 0 || xs.some((x) => x === undefined)) return undefined
    return computed(e, xs as number[])
  })
  return (e) => {
    if (e.kind === 'const') return e
    const value = registers(e)
    return value === undefined ? undefined : constant(value, computeType(e.dtype), e.span)
  }
}

function computed(e: Expr, [a = 0, b = 0, c = 0]: readonly number[]): number | undefined {
  switch (e.kind) {
    case 'select':
      return a !== 0 ? b : c
    case 'binary':
      // Nobody arrives where C's own division would be by 0.
      if ((e.op === 'quo' || e.op === 'rem') && b === 0) return undefined
      return inRegisters(e)(a, b)
    case 'unary':
    case 'call':
    case 'cast':
      return inRegisters(e)(a, b)
    default:
      return undefined
  }
}
