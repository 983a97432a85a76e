/** How both stages print operators: the language's spelling, and how tightly each binds. */
import type { Expr } from './expr.ts'
import { sameExpr } from './keys.ts'
import type { BinaryOp } from './ops.ts'

export const INFIX: Partial<Record<BinaryOp, readonly [string, number]>> = {
  or: ['or', 1],
  and: ['and', 2],
  lt: ['<', 4],
  le: ['<=', 4],
  gt: ['>', 4],
  ge: ['>=', 4],
  eq: ['==', 4],
  ne: ['!=', 4],
  add: ['+', 5],
  sub: ['-', 5],
  mul: ['*', 6],
  div: ['/', 6],
  mod: ['%', 6],
}

/**
 * The operands of what was written as `ceildiv(a, c)`: extents and the compiler's own keep it as `(a + (c - 1)) / c`, values
 * as `a / c + i32(a % c != 0)`.
 */
export function asCeildiv(e: Expr): readonly [Expr, Expr] | null {
  if (e.kind !== 'binary') return null
  const { a, b } = e
  if (e.op === 'div') {
    // A quotient of the text is shown as such: its sum may wrap.
    if (e.span || b.kind !== 'const' || b.value < 2) return null
    const sum = a.kind === 'binary' && a.op === 'add' && a.b.kind === 'const' && a.b.value === b.value - 1
    return sum ? [a.a, b] : null
  }
  if (e.op !== 'add' || a.kind !== 'binary' || a.op !== 'div' || b.kind !== 'cast') return null
  const { x } = b
  if (x.kind !== 'binary' || x.op !== 'ne' || x.b.kind !== 'const' || x.b.value !== 0) return null
  const rest = x.a
  const same = rest.kind === 'binary' && rest.op === 'mod' && sameExpr(rest.a, a.a) && sameExpr(rest.b, a.b)
  return same ? [a.a, a.b] : null
}
