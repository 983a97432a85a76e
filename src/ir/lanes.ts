/**
 * What neighbouring threads do together without a loop that is bound to them: tiles in declared register memories
 * and instructions of several threads. They are the threads of thread.x, and one statement is done by all of them.
 */
import type { Stmt } from './loops.ts'
import { accessesOf, type Body, walkStmts } from './tree.ts'

export interface Lanes {
  /** How many threads; 1 where nothing is done together. */
  readonly count: number
  /** Buffers in declared register memories. */
  readonly buffers: ReadonlySet<string>
}

export function lanesIn(body: Body): Lanes {
  let count = 1
  const buffers = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.memory?.scope === 'register') {
      buffers.add(s.buffer.name)
      count = Math.max(count, s.buffer.memory.threads)
    }
    if (s.kind === 'instr') count = Math.max(count, s.threads)
    if (s.kind === 'for' && s.mode.kind === 'instr') count = Math.max(count, s.mode.instr.threads)
  })
  return { count, buffers }
}

/** Whether the threads of thread.x do the statement, or something in it, together. */
export function isTogether(s: Stmt, lanes: Lanes): boolean {
  if (lanes.count === 1) return false
  let found = false
  walkStmts([s], (x) => {
    if (x.kind === 'instr' && x.threads > 1) found = true
    if (x.kind === 'for' && x.mode.kind === 'instr' && x.mode.instr.threads > 1) found = true
  })
  return found || accessesOf([s]).some((a) => lanes.buffers.has(a.buffer))
}
