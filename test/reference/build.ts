/** Short ways to write Stage I by hand. */
import type { Axis } from '../../src/ir/coordinates/axis.ts'
import type { Buffer1, Iteration, Kernel1, Param, Role, Stmt1 } from '../../src/ir/coordinates/stage1.ts'
import { type Expr, load, variable } from '../../src/ir/expressions/expr.ts'
import type { Dtype, ExprType } from '../../src/ir/values/dtype.ts'
import { type BuiltinReducer, builtinMonoid } from '../../src/ir/values/monoid.ts'

export const v = (name: string, dtype: ExprType = 'index'): Expr => variable(name, dtype)
export const size = (name: string): Param => ({ name, kind: 'size', dtype: 'i32' })
export const dense = (name: string, extent: Expr): Axis => ({
  kind: 'dense_fixed',
  parent: null,
  name,
  extent,
})
export const sparse = (
  name: string,
  parent: string | null,
  extent: Expr,
  more: { ordered?: boolean; unique?: boolean } = {},
): Axis => ({ kind: 'sparse_variable', name, parent, extent, ordered: true, unique: true, ...more })
export const ragged = (name: string, parent: string, extent: Expr): Axis => ({
  kind: 'dense_variable',
  name,
  parent,
  extent,
})
export const ell = (name: string, parent: string, extent: Expr, width: Expr): Axis => ({
  kind: 'sparse_fixed',
  name,
  parent,
  extent,
  width,
  ordered: true,
  unique: true,
})
export const buffer = (
  name: string,
  axes: readonly string[],
  role: Role,
  dtype: Dtype = 'f32',
  fill = 0,
): Buffer1 => ({ name, axes, role, dtype, fill, accumulate: dtype })
export const at = (name: string, index: readonly (Expr | string)[], dtype: Dtype = 'f32') =>
  load(
    name,
    index.map((e) => (typeof e === 'string' ? v(e) : e)),
    dtype,
  )
export const reduce = (
  target: ReturnType<typeof at>,
  reducer: BuiltinReducer,
  value: Expr,
): Extract<Stmt1, { kind: 'reduce' }> => ({
  kind: 'reduce',
  reducer: builtinMonoid(reducer, target.dtype),
  targets: [target],
  values: [value],
})
export const assign = (target: ReturnType<typeof at>, value: Expr): Stmt1 => ({
  kind: 'assign',
  targets: [target],
  values: [value],
})
/** `iters` are `name` or `name in axis`. */
export const iterate = (
  iters: string,
  kinds: string,
  body: readonly Stmt1[],
  where: readonly Expr[] = [],
): Iteration => ({
  kind: 'iterate',
  name: 'it',
  iters: iters
    .split(',')
    .map((s) => s.trim())
    .filter((s) => s !== '')
    .map((s, k) => {
      const [name, axis = name] = s.split(' in ') as [string, string?]
      return { name, axis, kind: kinds[k] as 'S' | 'R' }
    }),
  where,
  body,
})
export const kernel = (
  params: readonly Param[],
  axes: readonly Axis[],
  buffers: readonly Buffer1[],
  body: readonly Stmt1[],
): Kernel1 => ({ stage: 1, name: 'k', params, axes, buffers, body, reformats: [] })
