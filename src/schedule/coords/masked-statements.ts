/**
 * Statements under a format that keeps a mask: predication where padding would show. What is combined is the reducer's identity
 * there, so that loops stay whole and need no condition; an element of the tensor becomes its fill again; anything else is
 * asked first. The mask is a tensor like others over the axes that are replaced, 1 where there is an element.
 */
import { isFloat } from '../../ir/dtype.ts'
import { all, binary, cast, constant, type Expr, int, load, select, variable } from '../../ir/expr.ts'
import type { FormatInstance } from '../../ir/format.ts'
import type { Buffer1, Reduce1, Stmt1 } from '../../ir/stage1.ts'
import { when1 } from '../../ir/stage1-builders.ts'
import { type Body1, rewriteBody1, rewriteStmts1 } from '../../ir/stage1-tree.ts'
import type { Split, SplitBuffer } from './tensor-split.ts'

/** What the mask is called before each part has its own. */
const HELD = '@held'

/** What becomes of a statement; conditions are over the old coordinates. */
export type Masked =
  | { readonly how: 'combine' | 'ask'; readonly held: Expr }
  | { readonly how: 'restore'; readonly held: Expr; readonly fills: ReadonlyMap<number, Expr> }

/** The condition that the tensor has an element at each of these coordinates. */
export const isElement = (places: readonly (readonly string[])[]): Expr =>
  all(
    places.map((names) =>
      binary(
        'ne',
        load(
          HELD,
          names.map((n) => variable(n)),
          'i32',
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
  // What is summed in a wider type than it is kept in is not rounded before.
  if (isFloat(value.dtype) && isFloat(identity.dtype)) return select(held, value, cast(identity, value.dtype))
  return select(held, cast(value, identity.dtype), identity)
}

/** The fill that a masked position has again. */
export const fillOf = (b: Buffer1, like: Expr): Expr => cast(constant(b.fill, b.dtype), like.dtype)

/** The split with the mask among its buffers; of parts that `asks` leaves out it stays what it is called, and `settled` says what that is. */
export function withMasks(split: Split, asks: (part: FormatInstance) => boolean): Split {
  const parts = split.instance.parts.map((p) =>
    p.instance.mask !== undefined && asks(p.instance) ? p.instance.mask : HELD,
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

/** All that parts without padding visit is there. */
export const settled = (body: Body1): Body1 =>
  rewriteBody1(body, (e) => (e.kind === 'load' && e.buffer === HELD ? int(1) : undefined))

/** The masks of a format's parts, as buffers over the axes of their values. */
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
