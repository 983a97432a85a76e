/**
 * Invariant reached: no condition is constant. What unrolling decided to be false is gone, and with it accesses
 * that would be out of range wherever a later pass moved them.
 */
import { type Body, rewriteStmts } from '../ir/tree.ts'

export function settleBranches(body: Body): Body {
  return rewriteStmts(body, {
    stmt: (s) =>
      s.kind === 'if' && s.cond.kind === 'const' ? (s.cond.value !== 0 ? s.then : s.else) : undefined,
  })
}
