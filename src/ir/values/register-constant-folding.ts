/**
 * Constant folding with register semantics, of expressions of constants alone: integers wrap, floats are rounded to the
 * type of the computation. Constructors leave these expressions, because positions must not wrap and halves are rounded
 * later. Compilers of targets may reject overflows that they fold themselves.
 */

import { type Const, constant, type Expr } from '../expressions/expr.ts'
import { children, perExpr } from '../expressions/expr-tree.ts'
import { computeType } from './dtype.ts'
import { evaluateNode, registerOperation } from './evaluate.ts'

/**
 * A function that returns an expression's value in a register, of `computeType`, or `undefined` if it depends on
 * variables or memory. Without `foldsIndices`, expressions of type `index`, which then have 64 bits, are not folded.
 */
export function registerConstantFolder(foldsIndices = true): (e: Expr) => Const | undefined {
  const registers = perExpr<number | undefined>((e, operandValue) => {
    if (e.kind === 'const') return e.value
    if (e.kind === 'load' || e.kind === 'search' || (!foldsIndices && e.dtype === 'index')) return undefined
    const newOperands = children(e).map(operandValue)
    if (newOperands.length === 0 || newOperands.includes(undefined)) return undefined
    // Unreachable code: C leaves division by 0 undefined.
    if (e.kind === 'binary' && (e.op === 'quo' || e.op === 'rem') && newOperands[1] === 0) return undefined
    return evaluateNode(e, (x) => operandValue(x)!, registerOperation)
  })
  return (e) => {
    if (e.kind === 'const') return e
    const value = registers(e)
    return value === undefined ? undefined : constant(value, computeType(e.dtype), e.span)
  }
}
