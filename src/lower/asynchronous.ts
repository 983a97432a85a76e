/**
 * Invariant reached: what asynchronous instructions write is committed and waited for before anything else runs.
 * A pipeline has groups of its own; here are the copies outside of one.
 */
import { commitOf, type Instr, waitOf } from '../ir/instr.ts'
import type { Kernel2, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, mapSame, targetsOf, walkStmts, withBodies } from '../ir/tree.ts'

export function awaitCopies(kernel: Kernel2): Kernel2 {
  const body = mapSame(kernel.body, settle)
  return body === kernel.body ? kernel : { ...kernel, body }
}

function settle(s: Stmt): Stmt {
  return withBodies(s, bodiesOf(s).map(settled))
}

function settled(list: Body): Body {
  const out: Stmt[] = []
  let pending: Instr | undefined
  const flush = (): void => {
    if (pending) out.push(commitOf(pending), waitOf(pending, 0))
    pending = undefined
  }
  for (const s of list) {
    const instr = copies(s)
    if (instr) pending = instr
    // A group that stands here already is the pipeline's.
    else if (s.kind === 'instr') pending = undefined
    else if (s.kind !== 'alloc') flush()
    out.push(instr ? s : settle(s))
  }
  flush()
  return out.length === list.length && out.every((s, k) => s === list[k]) ? list : Object.freeze(out)
}

/** The asynchronous instruction that does all a statement writes, if that is so. */
function copies(s: Stmt): Instr | undefined {
  let instr: Instr | undefined
  let others = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && x.mode.kind === 'instr' && x.mode.instr.asynchronous) {
      instr = x.mode.instr
      return false
    }
    if (x.kind === 'instr' || targetsOf(x).length > 0) others = true
    return true
  })
  return others ? undefined : instr
}
