/**
 * Explicit type promotion of operands. Invariant reached: both operands of an operation have the type in which it is computed, so targets
 * need no implicit conversions. Types narrower than 32 bits are computed in 32 bits (`computeType`); only stores and explicit casts round
 * to them.
 */

import { type Exact, exactNarrowing } from '../../analysis/exact-narrowing.ts'
import { isPacked } from '../../analysis/instructions/lane-groups.ts'
import { call, cast, type Expr } from '../../ir/expressions/expr.ts'
import { children, withChildren } from '../../ir/expressions/expr-tree.ts'
import { buffersByName } from '../../ir/statements/definitions.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import { computeType, type ExprType, isHalf, join } from '../../ir/values/dtype.ts'
import { type CompareOp, isCompare } from '../../ir/values/math.ts'

export function castOperands(body: Body, buffers: readonly Buffer[]): Body {
  const bufferByName = buffersByName(buffers, body)
  const exact = exactNarrowing(body)
  return rewriteStmts(body, {
    expr: convert,
    stmt: (s) => {
      if (s.kind === 'store')
        return stmt({
          ...s,
          index: s.index.map((e) => to(e, 'index')),
          value: stored(s.value, bufferByName.get(s.buffer)!, exact),
        })
      if (s.kind === 'reduce')
        return stmt({ ...s, values: s.values.map((v, k) => to(v, s.targets[k]!.dtype)) })
      if (s.kind === 'if' || s.kind === 'while') return stmt({ ...s, cond: to(s.cond, 'bool') })
      if (s.kind === 'let') return stmt({ ...s, value: to(s.value, s.dtype) })
      return undefined
    },
  })
}

/** Casts `e` to the type in which values of `dtype` are computed. */
function to(e: Expr, dtype: ExprType): Expr {
  const target = computeType(dtype)
  return computeType(e.dtype) === target ? e : cast(e, target)
}

/** Casts a value for a store to memory, which rounds by itself, or to a register, which needs an explicit rounding. */
function stored(e: Expr, buffer: Buffer, exact: Exact): Expr {
  const { dtype } = buffer
  if (buffer.scope !== 'register' || isPacked(buffer)) {
    const same = e.kind === 'cast' && e.dtype === dtype && computeType(e.x.dtype) === computeType(dtype)
    return to(same ? e.x : e, dtype)
  }
  if (!isHalf(dtype) || exact.is(e, dtype) || exact.goesOn(buffer.name, e)) return to(e, dtype)
  return cast(cast(e, computeType(dtype)), dtype)
}

function convert(e: Expr): Expr | undefined {
  switch (e.kind) {
    case 'binary': {
      if (e.op === 'and' || e.op === 'or') return over(e, 'bool')
      return over(e, isCompare(e.op) ? compared(e.op, e.a.dtype, e.b.dtype) : e.dtype)
    }
    case 'call':
      return call(
        e.fn,
        e.args.map((a) => to(a, e.dtype)),
        e.span,
      )
    case 'select':
      return withChildren(e, [to(e.cond, 'bool'), to(e.then, e.dtype), to(e.else, e.dtype)])
    case 'load':
      return over(e, 'index')
    case 'unary':
      return e.op === 'not' ? over(e, 'bool') : undefined
    default:
      return undefined
  }
}

/** The type in which values are compared. Booleans are ordered as integers, because not every target orders them. */
function compared(op: CompareOp, a: ExprType, b: ExprType): ExprType {
  const both = a === b ? a : join(a, b)
  return both === 'bool' && op !== 'eq' && op !== 'ne' ? 'i32' : both
}

const over = (e: Expr, dtype: ExprType): Expr =>
  withChildren(
    e,
    children(e).map((c) => to(c, dtype)),
  )
