/** Expressions of Stage I as closures, by exact arithmetic of their types. */
import { InternalError, unreachable } from '../../ast/diagnostics/diagnostic.ts'
import type { Binary, Expr, Load } from '../../ir/expressions/expr.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { isCompare } from '../../ir/values/math.ts'
import { arithmetic, COMPARE, convert, mathOf, wrap } from '../../ir/values/numeric.ts'
import { compileAddress, tensorOf } from '../tensors/address.ts'
import { type Context, cellOf, type Scope, type Thunk } from '../tensors/cells.ts'
import { toStored } from '../tensors/reference-buffers.ts'

export function compileExpr(e: Expr, scope: Scope, ctx: Context): Thunk {
  const go = (x: Expr): Thunk => compileExpr(x, scope, ctx)
  switch (e.kind) {
    case 'const': {
      const v = e.value
      return () => v
    }
    case 'var': {
      const cell = cellOf(scope, e.name)
      return () => cell.v
    }
    case 'unary': {
      const x = go(e.x)
      if (e.op === 'not') return () => (x() === 0 ? 1 : 0)
      if (isFloat(e.dtype)) return () => -x()
      const toType = wrap(e.dtype)
      return () => toType(-x())
    }
    case 'binary':
      return compileBinary(e, go)
    case 'call': {
      const args = e.args.map(go)
      const [x, y] = args
      const fn = mathOf(e.fn)
      const toType = wrap(e.dtype)
      return y ? () => toType(fn(x!(), y())) : () => toType(fn(x!(), 0))
    }
    case 'select': {
      const [cond, a, b] = [go(e.cond), go(e.then), go(e.else)]
      return () => (cond() !== 0 ? a() : b())
    }
    case 'cast': {
      const x = go(e.x)
      const to = convert(e.x.dtype, e.dtype)
      return () => to(x())
    }
    case 'load':
      return compileLoad(e, scope, ctx)
    case 'builtin':
    case 'search':
      throw new InternalError(`${e.kind} does not occur in Stage I`)
    default:
      return unreachable(e)
  }
}

function compileBinary(e: Binary, go: (x: Expr) => Thunk): Thunk {
  const a = go(e.a)
  const b = go(e.b)
  const op = e.op
  if (op === 'and') return () => (a() !== 0 && b() !== 0 ? 1 : 0)
  if (op === 'or') return () => (a() !== 0 || b() !== 0 ? 1 : 0)
  if (isCompare(op)) {
    const test = COMPARE[op]
    return () => test(a(), b())
  }
  if (isFloat(e.dtype)) {
    // Frequent operators without a second call.
    if (op === 'add') return () => a() + b()
    if (op === 'sub') return () => a() - b()
    if (op === 'mul') return () => a() * b()
  }
  const f = arithmetic(op, e.dtype)
  return () => f(a(), b())
}

function compileLoad(e: Load, scope: Scope, ctx: Context): Thunk {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, (x) => compileExpr(x, scope, ctx))
  const { data } = t
  const { fill, dtype, accumulate } = t.buffer
  const toType = accumulate === dtype ? null : toStored(dtype)
  return () => {
    const a = address()
    if (a < 0) return fill
    return toType ? toType(data[a]!) : data[a]!
  }
}
