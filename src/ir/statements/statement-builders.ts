/** Constructors of statements, the only ones, and of buffers that passes create. */

import { add, all, div, type Expr, int, type Load, mod } from '../expressions/expr.ts'
import { someExpr } from '../expressions/expr-tree.ts'
import { type ExprType, scalarType } from '../values/dtype.ts'
import type {
  Alloc,
  Barrier,
  Buffer,
  Fill,
  For,
  If,
  Let,
  Reduce,
  Scope,
  Store,
  VectorLoad,
  VectorStore,
  While,
} from './loops.ts'
import { type Body, stmt } from './tree.ts'

type Extra<T> = Partial<Omit<T, 'kind'>>

/** A serial loop, without a nest name by default. */
export const forLoop = (name: string, extent: Expr, body: Body, extra: Extra<For> = {}): For =>
  stmt({
    kind: 'for',
    var: name,
    name,
    nest: '',
    extent,
    reduce: false,
    guards: [],
    mode: { kind: 'serial' },
    body,
    ...extra,
  })

export const when = (cond: Expr, then: Body, otherwise: Body = [], extra: Extra<If> = {}): If =>
  stmt({ kind: 'if', cond, then, else: otherwise, ...extra })

export const whileLoop = (cond: Expr, body: Body): While => stmt({ kind: 'while', cond, body })

/** `body` under the conjunction of all conditions. */
export const whenAll = (conditions: readonly Expr[], body: Body): Body =>
  conditions.length > 0 ? [when(all(conditions), body)] : body

/** The index of the element at a flat address; the last dimension varies fastest. */
export function unflatten(p: Expr, shape: readonly Expr[]): Expr[] {
  const out: Expr[] = []
  let remainder = p
  for (let k = shape.length - 1; k >= 0; k--) {
    out.unshift(k === 0 ? remainder : mod(remainder, shape[k]!))
    remainder = div(remainder, shape[k]!)
  }
  return out
}

export const store = (buffer: string, index: readonly Expr[], value: Expr, extra: Extra<Store> = {}): Store =>
  stmt({ kind: 'store', buffer, index, value, ...extra })

export const reduction = (fields: Omit<Reduce, 'kind'>): Reduce => stmt({ kind: 'reduce', ...fields })

export const alloc = (buffer: Buffer): Alloc => stmt({ kind: 'alloc', buffer })

export const define = (name: string, value: Expr, extra: Extra<Let> = {}): Let =>
  stmt({ kind: 'let', name, dtype: value.dtype, value, ...extra })

export const barrier = (extra: Extra<Barrier> = {}): Barrier => stmt({ kind: 'barrier', ...extra })

export const fill = (buffer: string, value: Expr): Fill => stmt({ kind: 'fill', buffer, value })

export const vectorLoad = (names: readonly string[], first: Load): VectorLoad =>
  stmt({ kind: 'vector_load', names, load: first })

/** `atomic`: the name of a reducer. */
export const vectorStore = (target: Load, values: readonly Expr[], atomic?: string): VectorStore =>
  stmt({ kind: 'vector_store', target, values, ...(atomic !== undefined && { atomic }) })

/** A register that holds a position, which is not data: at most `end`. */
export const positionRegister = (name: string, end?: Expr): Buffer =>
  Object.freeze({
    ...local(name, 'i32'),
    role: 'index',
    ...(end && !someExpr(end, (x) => x.kind === 'load' || x.kind === 'search')
      ? { below: add(end, int(1)) }
      : {}),
  })

/** A temporary buffer of the compiler; without dimensions it has one element. */
export const local = (
  name: string,
  dtype: ExprType,
  shape: readonly Expr[] = [],
  scope: Scope = 'register',
): Buffer =>
  Object.freeze({
    name,
    dtype: scalarType(dtype),
    scope,
    role: 'local',
    shape: shape.length > 0 ? shape : [int(1)],
    fill: 0,
    accumulate: scalarType(dtype),
  })
