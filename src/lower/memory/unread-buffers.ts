/**
 * Dead store elimination for whole buffers. Invariant reached: something reads each local buffer of the kernel, unless
 * an instruction writes it, or a reduction whose other results are read.
 */

import { capacityCounts } from '../../ir/coordinates/runtime-lists.ts'
import { accessesOf, readsOf, targetsOf } from '../../ir/statements/accesses.ts'
import type { Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, rewriteStmts, withBody } from '../../ir/statements/tree.ts'

export function removeUnreadBuffers(kernel: Kernel2): Kernel2 {
  const unread = unreadBuffers(kernel)
  if (unread.size === 0) return kernel
  const body = rewriteStmts(kernel.body, {
    stmt: (s) => (isEmpty(s) || writtenBy(s).some((name) => unread.has(name)) ? [] : undefined),
  })
  const buffers = kernel.buffers.filter((b) => !unread.has(b.name))
  // Values of the removed statements may have been the only reads of other buffers.
  return removeUnreadBuffers({ ...withBody(kernel, body), buffers })
}

function unreadBuffers(kernel: Kernel2): ReadonlySet<string> {
  // The host reads counts after the run.
  const read = new Set([...readsOf(kernel.body), ...capacityCounts(kernel)])
  const locals = kernel.buffers.filter((b) => b.role === 'local' && !read.has(b.name)).map((b) => b.name)
  if (locals.length === 0) return new Set()
  const writes = accessesOf(kernel.body).filter((a) => a.mode === 'write')
  const isNeeded = (name: string): boolean =>
    writes.some(
      ({ buffer, stmt, path }) =>
        buffer === name &&
        (path.some((l) => l.mode.kind === 'instr') || !writtenBy(stmt).every((w) => locals.includes(w))),
    )
  // Results of one reduction stay together.
  return new Set(locals.filter((name) => writes.some((w) => w.buffer === name) && !isNeeded(name)))
}

/** The buffers that a store, reduction or fill writes; others are instructions. */
const writtenBy = (s: Stmt): readonly string[] =>
  s.kind === 'fill' ? [s.buffer] : targetsOf(s).map((t) => t.buffer)

const isEmpty = (s: Stmt): boolean => {
  const bodies: readonly Body[] = bodiesOf(s)
  return bodies.length > 0 && bodies.every((b) => b.length === 0)
}
