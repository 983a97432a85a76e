/**
 * Asynchronous copies out of shared memory (bulk stores) that overlap the next iteration. The launch does not read what they write, and an
 * instruction waits until they have read their source. So the next iteration waits only before it overwrites this source.
 */

import type { Instr } from '../../ir/instructions/instr.ts'
import { accessesOf, readsOf, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, walkStmts } from '../../ir/statements/tree.ts'

export interface Outgoing {
  /** Copies whose target no other statement accesses, so a wait for the end of their reads suffices. */
  readonly copies: ReadonlySet<Stmt>
  /** The copies for which the next iteration of the enclosing loop need not wait at its start. */
  readonly carried: ReadonlySet<Stmt>
  /** Statements that first overwrite the source of copies of an earlier iteration, with the instructions to wait for. */
  readonly before: ReadonlyMap<Stmt, readonly Instr[]>
  /** Loops that end with copies in flight, with the instructions to wait for. */
  readonly after: ReadonlyMap<Stmt, readonly Instr[]>
}

/** Returns the asynchronous stores of the nest `top`. `startsOf`: the asynchronous instructions of a statement. */
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
        // Parallel iterations may write to the same source, so only serial loops carry copies.
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

/**
 * Returns the first statement of an iteration that writes one of the buffers, as deep inside as all threads of the block reach it
 * together.
 */
function firstWriter(loop: For, buffers: ReadonlySet<string>): Stmt | undefined {
  const go = (body: Body): Stmt | undefined => {
    const s = body.find((x) => [...writesOf([x])].some((b) => buffers.has(b)))
    return s?.kind === 'for' && s.mode.kind === 'bind' ? go(s.body) : s
  }
  return go(loop.body)
}
