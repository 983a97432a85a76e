/**
 * Removal of redundant atomics. Invariant reached: an update of global memory is atomic only if other threads may update the same element
 * concurrently. `atomic C` marks all nests. A nest whose parallel iterations write different elements, and whose launch writes the buffer
 * nowhere else, uses plain updates.
 */

import { mapSame } from '../../ir/lists.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { rewriteStmts, stmt, withBody } from '../../ir/statements/tree.ts'

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
