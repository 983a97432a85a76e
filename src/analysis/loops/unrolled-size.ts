/** The number of statements after loops are unrolled. */
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf } from '../../ir/statements/tree.ts'

/** Returns the number of copies that an unrolled loop makes of its body; 1 for other loops. */
export function copiesOf(l: For): number {
  if (l.mode.kind !== 'unroll' && l.mode.kind !== 'vectorize') return 1
  const factor = l.mode.kind === 'unroll' ? l.mode.factor : null
  // A factor leaves a remainder, which is a separate loop.
  if (factor !== null) return factor + 1
  return l.extent.kind === 'const' ? Math.max(1, l.extent.value) : 1
}

/** Returns the number of statements of the body, with the copies of unrolled loops. */
export const unrolledSize = (body: Body, copies: (l: For) => number = copiesOf): number =>
  body.reduce((n, s) => n + sizeOf(s, copies), 0)

const sizeOf = (s: Stmt, copies: (l: For) => number): number => {
  const inside = bodiesOf(s).reduce((n, b) => n + unrolledSize(b, copies), 0)
  return s.kind === 'for' ? copies(s) * Math.max(1, inside) : 1 + inside
}
