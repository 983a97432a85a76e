/**
 * Expressions of Stage I as closures, by exact arithmetic of their types: results of floats are not rounded. The
 * reference shares the evaluation of a tree and the arithmetic of types (`ir/values`) with the interpreters; names, loads
 * and addresses are its own, and no lowered program is evaluated here.
 */
import { InternalError } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { compileExpr as compileClosure, type Leaves, registerOperation } from '../../ir/values/evaluate.ts'
import { isTruth } from '../../ir/values/math.ts'
import { arithmetic, convert, mathOf, wrap } from '../../ir/values/numeric.ts'
import { compileAddress, tensorOf } from '../tensors/address.ts'
import { type Context, cellOf, type Scope, type Thunk } from '../tensors/cells.ts'
import { toStored } from '../tensors/reference-buffers.ts'

const operation: NonNullable<Leaves<void>['operation']> = (e) => {
  if (e.kind === 'cast') return convert(e.x.dtype, e.dtype)
  if (e.kind === 'binary') return isTruth(e.op) ? registerOperation(e) : arithmetic(e.op, e.dtype)
  if (e.kind === 'unary' && (e.op === 'not' || isFloat(e.dtype)))
    return e.op === 'not' ? registerOperation(e) : (x) => -x
  const toType = wrap(e.dtype)
  if (e.kind === 'unary') return (x) => toType(-x)
  const f = mathOf(e.fn)
  return (x, y) => toType(f(x, y))
}

const reject = (e: Expr): never => {
  throw new InternalError(`${e.kind} does not occur in Stage I`)
}

export const compileExpr = (e: Expr, scope: Scope, ctx: Context): Thunk =>
  compileClosure<void>(e, {
    variable: ({ name }) => {
      const cell = cellOf(scope, name)
      return () => cell.v
    },
    load: (x, go) => compileLoad(x, go, ctx, scope),
    builtin: reject,
    search: reject,
    operation,
  })

function compileLoad(e: Load, coordinate: (e: Expr) => Thunk, ctx: Context, scope: Scope): Thunk {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, coordinate)
  const { data } = t
  const { fill, dtype, accumulate } = t.buffer
  const toType = accumulate === dtype ? null : toStored(dtype)
  return () => {
    const a = address()
    if (a < 0) return fill
    return toType ? toType(data[a]!) : data[a]!
  }
}
