/** Short constructors of Stage II trees for documentation examples, tests and rewrites. */

import { constant, type Expr, int, type Load, load, variable } from '../../src/ir/expressions/expr.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt, Store } from '../../src/ir/statements/loops.ts'
import { forLoop, reduction, store as storeAt } from '../../src/ir/statements/statement-builders.ts'
import type { Body } from '../../src/ir/statements/tree.ts'
import type { ExprType } from '../../src/ir/values/dtype.ts'
import { type BuiltinReducer, builtinMonoid } from '../../src/ir/values/monoid.ts'

export type Operand = Expr | number | string

/** Converts an operand to an expression: a number to an i32 literal, a string to an i32 variable. */
export const expr = (x: Operand): Expr =>
  typeof x === 'number' ? int(x) : typeof x === 'string' ? variable(x) : x

export function loop(
  name: string,
  extent: Operand,
  body: readonly Stmt[],
  more: Partial<Omit<For, 'kind' | 'extent' | 'body'>> = {},
): For {
  return forLoop(name, expr(extent), body, { nest: 'main', ...more })
}

export const at = (buffer: string, index: readonly Operand[], dtype: ExprType = 'f32'): Load =>
  load(buffer, index.map(expr), dtype)

export const store = (target: Load, value: Operand): Store =>
  storeAt(target.buffer, target.index, valueFor(target, value))

export function reduce(
  target: Load,
  op: BuiltinReducer,
  value: Operand,
  more: { init?: boolean; atomic?: boolean } = { init: true },
): Reduce {
  return reduction({
    reducer: builtinMonoid(op, target.dtype),
    targets: [target],
    values: [valueFor(target, value)],
    init: more.init ?? false,
    atomic: more.atomic ?? false,
  })
}

const valueFor = (target: Load, x: Operand): Expr =>
  typeof x === 'number' ? constant(x, target.dtype) : expr(x)

export function buffer(
  name: string,
  shape: readonly Operand[],
  role: Buffer['role'],
  more: Partial<Pick<Buffer, 'dtype' | 'scope' | 'fill' | 'accumulate' | 'positions'>> = {},
): Buffer {
  const dtype = more.dtype ?? (role === 'index' ? 'i32' : 'f32')
  return Object.freeze({
    name,
    dtype,
    scope: 'global',
    role,
    shape: shape.map(expr),
    fill: 0,
    accumulate: dtype,
    ...more,
  } satisfies Buffer)
}

export const kernel2 = (
  name: string,
  sizes: readonly string[],
  buffers: readonly Buffer[],
  body: Body,
): Kernel2 =>
  Object.freeze({
    stage: 2,
    name,
    params: sizes.map((s) => ({ name: s, kind: 'size', dtype: 'i32' })),
    buffers,
    body,
  } satisfies Kernel2)
