/** Invariants of expressions in Stages II and III, checked with the variables and buffers in scope. */
import { InternalError } from '../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { walkExpr } from '../ir/expressions/expr-tree.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import type { Buffer } from '../ir/statements/loops.ts'
import { type ExprType, elementType } from '../ir/values/dtype.ts'
import { MATH } from '../ir/values/math.ts'

export interface ExprScope {
  readonly vars: ReadonlyMap<string, ExprType>
  readonly buffers: ReadonlyMap<string, Buffer>
}

/** Throws `InternalError` with the location unless the condition holds. */
export type Check = (condition: boolean, message: () => string) => void

/** Verifies nodes that are not in `known`; `more` checks the stage's additional invariants of a node. */
export function verifyExpr(
  e: Expr,
  scope: ExprScope,
  where: () => string,
  verified: Set<Expr>,
  checkNode: (e: Expr, check: Check) => void,
): void {
  const verify = (x: Expr): void => {
    const check: Check = (condition, message) => {
      if (!condition) throw new InternalError(`${where()}: ${printExpr(x)}: ${message()}`)
    }
    verifyNode(x, scope, check)
    checkNode(x, check)
  }
  walkExpr(e, verify, verified)
}

function verifyNode(e: Expr, { vars, buffers }: ExprScope, check: Check): void {
  switch (e.kind) {
    case 'var':
      check(vars.has(e.name), () => 'not bound here')
      check(vars.get(e.name) === e.dtype, () => `is ${vars.get(e.name)}, not ${e.dtype}`)
      break
    case 'call':
      check(e.args.length === MATH[e.fn].arity, () => 'wrong number of arguments')
      break
    case 'select':
      check(e.cond.dtype === 'bool', () => `the condition is ${e.cond.dtype}`)
      break
    case 'search':
      check(buffers.has(e.buffer), () => `no buffer ${e.buffer} here`)
      break
    case 'load': {
      const buffer = buffers.get(e.buffer)
      const type = buffer && elementType(buffer)
      check(type !== undefined, () => `no buffer ${e.buffer} here`)
      check(
        type === e.dtype || (type === 'i32' && e.dtype === 'index'),
        () => `${e.buffer} is ${type}, not ${e.dtype}`,
      )
    }
  }
}
