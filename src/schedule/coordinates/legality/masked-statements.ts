/**
 * Predication of statements under a format with a mask, if padding would change results. At padding, a reduction
 * combines its identity, so that loops stay whole and need no condition; an element of the tensor is reset to its fill
 * value; any other statement runs under a condition. The mask is a tensor over the replaced axes with the value 1 at
 * elements.
 */

import type { Buffer1, Reduce1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { type Body1, rewriteBody1, rewriteStmts1, when1 } from '../../../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { all, binary, cast, constant, int, load, select, variable } from '../../../ir/expressions/expr.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { isFloat } from '../../../ir/values/dtype.ts'
import type { Split, SplitBuffer } from '../as/tensor-split.ts'

/** The name of the mask in statements that are not yet rewritten for one part. */
const HELD = '@held'

/** The predication of a statement; conditions are over the old coordinates. */
export type Masked =
  | { readonly how: 'combine' | 'ask'; readonly held: Expr }
  | { readonly how: 'restore'; readonly held: Expr; readonly fills: ReadonlyMap<number, Expr> }

/** Returns the condition that the tensor has an element at each of these coordinates. */
export const isElement = (places: readonly (readonly string[])[]): Expr =>
  all(
    places.map((names) =>
      binary(
        'ne',
        load(
          HELD,
          names.map((n) => variable(n)),
        ),
        int(0),
      ),
    ),
  )

export function maskedBody(body: Body1, plans: ReadonlyMap<Stmt1, Masked>): Body1 {
  if (plans.size === 0) return body
  return rewriteStmts1(body, (s) => {
    const plan = plans.get(s)
    if (!plan || (s.kind !== 'assign' && s.kind !== 'reduce')) return undefined
    if (plan.how === 'ask') return when1(plan.held, [s])
    const values = s.values.map((v, k) => {
      if (s.kind === 'reduce') return orIdentity(s, k, plan.held)
      const fill = plan.how === 'restore' ? plan.fills.get(k) : undefined
      return fill ? select(plan.held, v, fill) : v
    })
    return { ...s, values }
  })
}

function orIdentity({ reducer, values }: Reduce1, k: number, held: Expr): Expr {
  const [value, identity] = [values[k]!, reducer.identity[k]!]
  // A value that is summed in a wider type than its storage type must not be rounded before.
  if (isFloat(value.dtype) && isFloat(identity.dtype)) return select(held, value, cast(identity, value.dtype))
  return select(held, cast(value, identity.dtype), identity)
}

/** Returns the fill value of a masked position, in the type of `like`. */
export const fillOf = (b: Buffer1, like: Expr): Expr => cast(constant(b.fill, b.dtype), like.dtype)

/**
 * Returns the split with the mask among its buffers. The mask of parts for which `needsMask` is false keeps the name
 * `HELD`, and `settled` replaces it.
 */
export function withMasks(split: Split, needsMask: (part: FormatInstance) => boolean): Split {
  const parts = split.instance.parts.map((p) =>
    p.instance.mask !== undefined && needsMask(p.instance) ? p.instance.mask : HELD,
  )
  const buffer: Buffer1 = {
    name: HELD,
    dtype: 'i32',
    axes: split.over.map((a) => a.name),
    role: 'in',
    fill: 0,
    accumulate: 'i32',
  }
  const held: SplitBuffer = { buffer, parts, start: 0 }
  return { ...split, buffers: new Map([...split.buffers, [HELD, held]]) }
}

/** Replaces the masks of parts without padding by 1. */
export const settled = (body: Body1): Body1 =>
  rewriteBody1(body, (e) => (e.kind === 'load' && e.buffer === HELD ? int(1) : undefined))

/** Returns the masks of a format's parts, as buffers over the axes of their values. */
export const maskBuffers = ({ instance }: Split): Buffer1[] =>
  instance.parts.flatMap(({ instance: { mask, order } }) =>
    mask === undefined
      ? []
      : [
          {
            name: mask,
            dtype: 'i32' as const,
            axes: order,
            role: 'in' as const,
            fill: 0,
            accumulate: 'i32' as const,
            table: true,
            mask,
          },
        ],
  )
