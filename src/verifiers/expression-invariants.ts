/** Invariants of expressions in Stages II and III, checked with the variables and buffers in scope. */
import { InternalError } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import { walkExpr } from '../ir/expr-tree.ts'
import type { Buffer } from '../ir/loops.ts'
import { MATH } from '../ir/math.ts'
import { printExpr } from '../ir/print-stage2.ts'

/** Variables and buffers in scope. */
export interface Bound {
  readonly vars: ReadonlyMap<string, Dtype>
  readonly buffers: ReadonlyMap<string, Buffer>
}

/** Throws `InternalError` with the place unless the condition holds. */
export type Holds = (condition: boolean, what: () => string) => void

/** Verifies nodes that are not in `known`; `more` checks the stage's additional invariants of a node. */
export function verifyExpr(
  e: Expr,
  bound: Bound,
  where: () => string,
  known: Set<Expr>,
  more: (e: Expr, holds: Holds) => void,
): void {
  const verify = (x: Expr): void => {
    const holds: Holds = (condition, what) => {
      if (!condition) throw new InternalError(`${where()}: ${printExpr(x)}: ${what()}`)
    }
    verifyNode(x, bound, holds)
    more(x, holds)
  }
  walkExpr(e, verify, known)
}

function verifyNode(e: Expr, { vars, buffers }: Bound, holds: Holds): void {
  switch (e.kind) {
    case 'var':
      holds(vars.has(e.name), () => 'not bound here')
      holds(vars.get(e.name) === e.dtype, () => `is ${vars.get(e.name)}, not ${e.dtype}`)
      break
    case 'call':
      holds(e.args.length === MATH[e.fn].arity, () => 'wrong number of arguments')
      break
    case 'select':
      holds(e.cond.dtype === 'bool', () => `the condition is ${e.cond.dtype}`)
      break
    case 'search':
      holds(buffers.has(e.buffer), () => `no buffer ${e.buffer} here`)
      break
    case 'load': {
      const type = buffers.get(e.buffer)?.dtype
      holds(type !== undefined, () => `no buffer ${e.buffer} here`)
      holds(type === e.dtype, () => `${e.buffer} is ${type}, not ${e.dtype}`)
    }
  }
}
