/** Short spellings of statements and buffers that passes make. */
import type { Dtype } from './dtype.ts'
import { add, all, type Expr, int } from './expr.ts'
import { someExpr } from './expr-tree.ts'
import type { Alloc, Buffer, If, Scope, Store } from './loops.ts'
import { type Body, stmt } from './tree.ts'

export const when = (cond: Expr, then: Body, otherwise: Body = []): If =>
  stmt({ kind: 'if', cond, then, else: otherwise })

/** `body` where all conditions hold. */
export const whenAll = (conditions: readonly Expr[], body: Body): Body =>
  conditions.length > 0 ? [when(all(conditions), body)] : body

export const store = (buffer: string, index: readonly Expr[], value: Expr): Store =>
  stmt({ kind: 'store', buffer, index, value })

export const alloc = (buffer: Buffer): Alloc => stmt({ kind: 'alloc', buffer })

/** A register that holds a position, which is not data: one of those before `end` or `end` itself. */
export const place = (name: string, end?: Expr): Buffer =>
  Object.freeze({
    ...local(name, 'i32'),
    role: 'index',
    ...(end && !someExpr(end, (x) => x.kind === 'load' || x.kind === 'search')
      ? { below: add(end, int(1)) }
      : {}),
  })

/** A buffer of the compiler's own; without dimensions it has one element. */
export const local = (
  name: string,
  dtype: Dtype,
  shape: readonly Expr[] = [],
  scope: Scope = 'register',
): Buffer =>
  Object.freeze({
    name,
    dtype,
    scope,
    role: 'local',
    shape: shape.length > 0 ? shape : [int(1)],
    fill: 0,
    accumulate: dtype,
  })
