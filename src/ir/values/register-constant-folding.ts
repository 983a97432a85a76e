/**
 * Constant folding with register semantics, of expressions of constants alone: integers wrap, floats are rounded to the
 * type of the computation. Constructors leave these expressions, because positions must not wrap and halves are rounded
 * later. Compilers of targets may reject overflows that they fold themselves.
 */

import { type Const, constant, type Expr } from '../expressions/expr.ts'
import { children, perExpr } from '../expressions/expr-tree.ts'
import { computeType } from './dtype.ts'
import { registerOperation } from './evaluate.ts'

/**
 * A function that returns an expression's value in a register, of `computeType`, or `undefined` if it depends on
 * variables or memory. Without `foldsIndices`, expressions of type `index`, which then have 64 bits, are not folded.
 */
export function registerConstantFolder(foldsIndices = true): (e: Expr) => Const | undefined {
  const registers = perExpr<number | undefined>((e, operandValue) => {
    if (e.kind === 'const') return e.value
    if (!foldsIndices && e.dtype === 'index') return undefined
    const newOperands = children(e).map(operandValue)
    if (newOperands.length === 0 || newOperands.some((x) => x === undefined)) return undefined
    return evaluateNode(e, newOperands as number[])
  })
  return (e) => {
    if (e.kind === 'const') return e
    const value = registers(e)
    return value === undefined ? undefined : constant(value, computeType(e.dtype), e.span)
  }
}

function evaluateNode(e: Expr, [a = 0, b = 0, c = 0]: readonly number[]): number | undefined {
  switch (e.kind) {
    case 'select':
      return a !== 0 ? b : c
    case 'binary':
      // Unreachable code: C leaves division by 0 undefined.
      if ((e.op === 'quo' || e.op === 'rem') && b === 0) return undefined
      return registerOperation(e)(a, b)
    case 'unary':
    case 'call':
    case 'cast':
      return registerOperation(e)(a, b)
    default:
      return undefined
  }
}
