/** Bounds and signs of integer expressions, by what is known of names and arrays where they stand. */
import { boundVarsOf } from '../../ir/bindings.ts'
import type { Expr } from '../../ir/expr.ts'
import { children, perExpr } from '../../ir/expr-tree.ts'
import type { Buffer } from '../../ir/loops.ts'
import type { Param } from '../../ir/stage1.ts'
import { type Body, walkStmts } from '../../ir/tree.ts'
import { valuesIn } from '../../ir/wrapping-values.ts'
import {
  ANY,
  beyond,
  binaryInterval,
  type Interval,
  interval,
  intervalOf,
  isNonNegative,
  NATURAL,
  type NamedRange,
} from './interval.ts'
import type { Extents, Linear } from './linear.ts'

/** Bounds that follow from something else than those of operands; `of` gives these. */
export type KnownRange = (e: Expr, of: (e: Expr) => Interval) => Interval | undefined

/** Bounds of expressions, each node once. */
export const rangesBy = (known: KnownRange): ((e: Expr) => Interval) =>
  perExpr((e, of) => known(e, of) ?? intervalOf(e, children(e).map(of)))

/** Bounds of expressions over loops. */
export const rangesOver = (loops: Extents): ((e: Expr) => Interval) =>
  rangesBy((e) => {
    const extent = e.kind === 'var' ? loops.get(e.name)?.extent : undefined
    return extent?.kind === 'const' ? interval(0, Math.max(0, extent.value - 1)) : extent && NATURAL
  })

/** Bounds of a sum, from those of its terms. */
export const rangeOfSum = ({ terms, constant }: Linear, range: (e: Expr) => Interval): Interval =>
  [...terms.values()].reduce(
    (sum, { term, coefficient: c }) =>
      binaryInterval('add', sum, binaryInterval('mul', range(term), interval(c, c))),
    interval(constant, constant),
  )

/** Bounds where they are known. Divisors are taken for what they may be: `x / 0` is 0. */
export function boundsOf(e: Expr, named: NamedRange): Interval | undefined {
  const found = rangesBy((x) => (x.kind === 'var' ? intervalOf(x, [], named) : undefined))(e)
  return found.known ? found : undefined
}

/** The first part of an i32 expression that may leave 32 bits, where its bounds are known. */
export function overflowIn(e: Expr, named: NamedRange): (Interval & { readonly expr: Expr }) | undefined {
  let found: (Interval & { readonly expr: Expr }) | undefined
  rangesBy((x, of) => {
    const own = intervalOf(x, children(x).map(of), named)
    if (own.fits || x.dtype !== 'i32') return own
    if (beyond(own)) found ??= { ...own, expr: x }
    return ANY
  })(e)
  return found
}

/**
 * Which integer expressions of a body cannot be negative: sizes, positions, index arrays, and what is made of them, unless
 * it wraps. A `let` may be anything.
 */
export function naturals(
  body: Body,
  params: readonly Param[],
  buffers: readonly Buffer[],
): (e: Expr) => boolean {
  const natural = new Set(params.filter((p) => p.kind === 'size').map((p) => p.name))
  for (const v of boundVarsOf(body)) natural.add(v)
  walkStmts(body, (s) => {
    if (s.kind === 'let') natural.delete(s.name)
  })
  const values = valuesIn(body).spans
  const index = new Set(buffers.filter((b) => b.role === 'index').map((b) => b.name))
  const range = rangesBy((e) => {
    if (e.dtype === 'u32' || e.dtype === 'u8' || e.dtype === 'bool') return NATURAL
    switch (e.kind) {
      case 'builtin':
        return NATURAL
      case 'var':
        return natural.has(e.name) ? NATURAL : ANY
      case 'load':
        return index.has(e.buffer) ? NATURAL : ANY
      // Of other types, which wrap.
      case 'cast':
        return ANY
      case 'binary': {
        if ((e.op === 'add' || e.op === 'mul') && e.span && values.has(e.span)) return ANY
        // indptr[p + 1] - indptr[p]: a length.
        const isLength =
          e.op === 'sub' && e.a.kind === 'load' && e.b.kind === 'load' && e.a.buffer === e.b.buffer
        return isLength && index.has(e.a.buffer) ? NATURAL : undefined
      }
      default:
        return undefined
    }
  })
  return (e) => isNonNegative(range(e))
}
