/** Copies into shared memory in a loop: the statements that only copy, and can run iterations ahead of their use. */
import { accessesOf, writesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'

export interface Copies {
  /** Statements of the loop's body that only copy, in order. */
  readonly statements: readonly Stmt[]
  /** The buffers that these statements fill, allocated in the loop's body. */
  readonly buffers: readonly Buffer[]
  /**
   * Statements that fill such a buffer but read data that the loop writes, with the name of the buffer that is read.
   */
  readonly late: readonly { readonly stmt: Stmt; readonly fills: string; readonly reads: string }[]
}

export function copiesIn(loop: For): Copies {
  const shared = new Map<string, Buffer>()
  for (const s of loop.body)
    if (s.kind === 'alloc' && s.buffer.scope === 'shared') shared.set(s.buffer.name, s.buffer)
  const written = writesOf(loop.body)
  const late: { stmt: Stmt; fills: string; reads: string }[] = []
  let found = loop.body.filter((s) => {
    if (s.kind !== 'for' && s.kind !== 'if' && s.kind !== 'store') return false
    const all = accessesOf([s])
    const writes = all.filter((a) => a.mode === 'write')
    const fills = writes[0]?.buffer
    if (fills === undefined || writes.some((a) => !shared.has(a.buffer) || a.stmt.kind !== 'store'))
      return false
    const reads = all.find((a) => a.mode === 'read' && written.has(a.buffer))
    if (reads) late.push({ stmt: s, fills, reads: reads.buffer })
    return !reads
  })
  // A statement stays if another statement writes a buffer that it fills.
  for (let settled = false; !settled; ) {
    const other = writesOf(loop.body.filter((s) => !found.includes(s)))
    const kept = found.filter((s) => ![...writesOf([s])].some((b) => other.has(b)))
    settled = kept.length === found.length
    found = kept
  }
  const filled = writesOf(found as Body)
  return { statements: found, buffers: [...shared.values()].filter((b) => filled.has(b.name)), late }
}
