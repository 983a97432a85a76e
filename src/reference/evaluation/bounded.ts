/**
 * Expressions of Stage I as closures: by exact arithmetic (`compileExpr`), or storing the error bound of their value in
 * `last.error` (`compileBounded`). At discontinuities (comparisons, `floor`, casts to integers), operands that may be on
 * either side make the result undecided.
 */
import { InternalError } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { compileExpr as compileClosure, unroundedOperation } from '../../ir/values/evaluate.ts'
import { errorAt, last, monotoneError, UNDECIDED } from '../error.ts'
import { type Context, cellOf, compileAddress, type Scope, type Thunk, tensorOf } from '../tensors/cells.ts'
import { toStored } from '../tensors/reference-buffers.ts'
import { binary, boundOrUndecided, call, cast, FUNCTION_ERRORS } from './bounded-operators.ts'

/** True if every correct program computes the same value; determined from the text alone. */
export const isExact = (e: Expr, scope: Scope, ctx: Context): boolean =>
  isExactNode(e, scope, ctx) && children(e).every((x) => isExact(x, scope, ctx))

function isExactNode(e: Expr, scope: Scope, ctx: Context): boolean {
  switch (e.kind) {
    case 'var':
      return cellOf(scope, e.name).error === undefined
    case 'load':
      return ctx.tensors.get(e.buffer)?.bounds === null
    case 'binary':
      return !isFloat(e.dtype) || e.op === 'min' || e.op === 'max'
    case 'call':
      return FUNCTION_ERRORS[e.fn].deviceError === null
    default:
      return e.kind !== 'builtin' && e.kind !== 'search'
  }
}

export function compileBounded(e: Expr, scope: Scope, ctx: Context): Thunk {
  if (isExact(e, scope, ctx)) {
    const run = compileExpr(e, scope, ctx)
    return () => {
      const v = run()
      last.error = 0
      return v
    }
  }
  const compile = (x: Expr): Thunk => compileBounded(x, scope, ctx)
  switch (e.kind) {
    case 'var': {
      const cell = cellOf(scope, e.name)
      return () => {
        last.error = cell.error ?? 0
        return cell.v
      }
    }
    case 'unary': {
      const x = compile(e.x)
      return e.op === 'not' ? () => (x() === 0 ? 1 : 0) : () => -x()
    }
    case 'binary':
      return binary(e, compile(e.a), compile(e.b), ctx.precision)
    case 'select': {
      const [cond, a, b] = [compile(e.cond), compile(e.then), compile(e.else)]
      return () => {
        const c = cond()
        if (last.error === 0) return c !== 0 ? a() : b()
        const x = a()
        const ex = last.error
        const y = b()
        const ey = last.error
        const difference = x === y ? 0 : Math.abs(x - y)
        // Branches that agree within their errors are continuous where the condition changes, as in a clamp; others are
        // not.
        last.error = difference <= ex + ey ? boundOrUndecided(Math.max(ex, ey) + difference) : UNDECIDED
        return c !== 0 ? x : y
      }
    }
    case 'cast': {
      const x = compile(e.x)
      return cast(x, e.x.dtype, e.dtype)
    }
    case 'call':
      return call(e, e.args.map(compile))
    case 'load':
      return compileElement(e, scope, ctx)
    default:
      return compileExpr(e, scope, ctx)
  }
}

/** Compiles a load from a computed buffer. An undecided index may denote any element. */
function compileElement(e: Load, scope: Scope, ctx: Context): Thunk {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, (x) => compileExpr(x, scope, ctx))
  const isUndecided = undecidedIndex(e, scope, ctx)
  const { data, bounds } = t
  const { fill, dtype, accumulate } = t.buffer
  const round = toStored(dtype)
  return () => {
    if (isUndecided?.()) {
      last.error = Number.POSITIVE_INFINITY
      return fill
    }
    const a = address()
    last.error = 0
    if (a < 0) return fill
    if (!bounds) return data[a]!
    const v = round(data[a]!)
    last.error = monotoneError(round, data[a]!, errorAt(bounds, a, dtype, accumulate), v)
    return v
  }
}

/** A test if some index may differ within its error; `null` if that is impossible. */
export function undecidedIndex(e: Load, scope: Scope, ctx: Context): (() => boolean) | null {
  const inexact = e.index.filter((x) => !isExact(x, scope, ctx)).map((x) => compileBounded(x, scope, ctx))
  if (inexact.length === 0) return null
  return () =>
    inexact.some((x) => {
      x()
      return last.error > 0
    })
}

// Expressions of Stage I as closures. The reference shares the evaluation of a tree and the arithmetic of types (`ir/values`)
// with the interpreters; names, loads and addresses are its own, and no lowered program is evaluated here.

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
    operation: unroundedOperation,
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
