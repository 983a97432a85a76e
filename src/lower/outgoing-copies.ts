/**
 * Copies that leave a loop's iteration by themselves (bulk stores): what they copy was computed in it, nobody in the launch
 * reads what they write, and a text says when they have read. So the next iteration begins, and waits only before it writes
 * to the memory that they read.
 */

import { accessesOf, readsOf, writesOf } from '../ir/accesses.ts'
import { allocatedNames } from '../ir/bindings.ts'
import type { Instr } from '../ir/instr.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, walkStmts } from '../ir/tree.ts'

export interface Outgoing {
  /** Nothing else touches what they write: who waits does so until they have read. */
  readonly copies: ReadonlySet<Stmt>
  /** Of these, those that the next iteration of the loop around does not wait for to begin. */
  readonly carried: ReadonlySet<Stmt>
  /** Statements that first write what copies of an iteration before may still read. */
  readonly before: ReadonlyMap<Stmt, readonly Instr[]>
  /** Loops that end with copies under way. */
  readonly after: ReadonlyMap<Stmt, readonly Instr[]>
}

/** `startsOf`: the asynchronous instructions that do all a statement does. */
export function outgoingCopies(top: Stmt, startsOf: (s: Stmt) => readonly Instr[]): Outgoing {
  const copies = new Set<Stmt>()
  const carried = new Set<Stmt>()
  const before = new Map<Stmt, readonly Instr[]>()
  const after = new Map<Stmt, readonly Instr[]>()
  const shared = allocatedNames([top], 'shared')
  const local = allocatedNames([top])
  const isAlone = (s: Stmt): boolean => {
    const written = writesOf([s])
    const read = [...readsOf([s])].filter((b) => local.has(b))
    return (
      read.length > 0 &&
      read.every((b) => shared.has(b)) &&
      [...written].every((b) => !local.has(b)) &&
      accessesOf([top], written).length === accessesOf([s], written).length
    )
  }
  walkStmts([top], (loop) => {
    for (const body of bodiesOf(loop))
      for (const s of body) {
        const started = startsOf(s)
        if (started.length === 0 || !started.every((i) => i.asynchronous?.waitRead) || !isAlone(s)) continue
        copies.add(s)
        // Iterations of other loops may write where those before them did.
        if (loop.kind !== 'for' || loop.mode.kind !== 'serial' || loop.reduce) continue
        const at = firstWriter(loop, readsOf([s]))
        if (!at || at === s) continue
        carried.add(s)
        before.set(at, [...(before.get(at) ?? []), ...started])
        after.set(loop, [...(after.get(loop) ?? []), ...started])
      }
    return true
  })
  return { copies, carried, before, after }
}

/** What first writes to the buffers in an iteration, as deep inside as all threads of the block come to it together. */
function firstWriter(loop: For, buffers: ReadonlySet<string>): Stmt | undefined {
  const go = (body: Body): Stmt | undefined => {
    const s = body.find((x) => [...writesOf([x])].some((b) => buffers.has(b)))
    return s?.kind === 'for' && s.mode.kind === 'bind' ? go(s.body) : s
  }
  return go(loop.body)
}
