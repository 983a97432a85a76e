/**
 * Detection of independent iterations. Invariant reached: a loop is a reduction loop only if its iterations, or those of reduction loops
 * around it, may write the same element. An iterator declared `R` may still visit distinct rows: dense rows, a permutation, or a list
 * without duplicates. Such a loop is marked spatial (`S`).
 */

import { isIndependent } from '../../analysis/dependence/loop-writes.ts'
import { mapSame } from '../../ir/lists.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, rewriteStmts, stmt, withBodies, withBody } from '../../ir/statements/tree.ts'

export function markIndependentLoops(kernel: Kernel2): Kernel2 {
  // If iterations of an outer loop may conflict, loops inside may conflict too, so they are not visited.
  const go = (body: Body): Body =>
    mapSame(body, (s) => {
      const within = (): readonly Body[] => bodiesOf(s).map(go)
      if (s.kind !== 'for' || !s.reduce) return withBodies(s, within())
      return isIndependent(kernel, s) ? stmt<For>({ ...s, reduce: false, body: within()[0]! }) : s
    })
  const body = go(kernel.body)
  return withBody(kernel, body)
}

/**
 * Removal of redundant atomics. Invariant reached: an update of global memory is atomic only if other threads may update the same element
 * concurrently. `atomic C` marks all nests. A nest whose parallel iterations write different elements, and whose launch writes the buffer
 * nowhere else, uses plain updates.
 */
export function removeRedundantAtomics(kernel: Kernel2): Kernel2 {
  const global = new Set(kernel.buffers.map((b) => b.name))
  const body = mapSame(kernel.body, (top) => {
    const alone = aloneIn(top, global)
    if (alone.size === 0) return top
    return rewriteStmts([top], {
      stmt: (s) => (s.kind === 'reduce' && alone.has(s) ? stmt({ ...s, atomic: false }) : undefined),
    })[0]!
  })
  return withBody(kernel, body)
}

/** Atomic updates of a nest that no other thread's update can conflict with. */
function aloneIn(top: Stmt, global: ReadonlySet<string>): ReadonlySet<Reduce> {
  const writes = accessesOf([top]).filter((a) => a.mode === 'write')
  const out = new Set<Reduce>()
  for (const { stmt: s, buffer, path } of writes) {
    if (s.kind !== 'reduce' || !s.atomic || !global.has(buffer)) continue
    // The loops of an instruction are not modified.
    if (path.some((l) => l.mode.kind === 'instr')) continue
    const meets = path.some((l) => l.mode.kind === 'bind' && l.reduce)
    if (!meets && writes.every((w) => w.buffer !== buffer || w.stmt === s)) out.add(s)
  }
  return out
}
