/**
 * Invariant reached: what asynchronous instructions do is committed and waited for before anything depends on it.
 * Other asynchronous work may start in between. A pipeline has groups of its own for its copies; here is the rest.
 */
import { commitOf, type Instr, waitOf } from '../ir/instr.ts'
import type { Kernel2, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, mapSame, targetsOf, walkStmts, withBodies } from '../ir/tree.ts'

export function awaitInstructions(kernel: Kernel2): Kernel2 {
  const body = mapSame(kernel.body, settle)
  return body === kernel.body ? kernel : { ...kernel, body }
}

function settle(s: Stmt): Stmt {
  return withBodies(s, bodiesOf(s).map(settled))
}

function settled(list: Body): Body {
  const out: Stmt[] = []
  const open = new Map<string, Instr>()
  const pending = new Map<string, Instr>()
  const commit = (but?: string): void => {
    for (const [name, instr] of open) {
      if (name === but) continue
      out.push(commitOf(instr))
      open.delete(name)
      pending.set(name, instr)
    }
  }
  const wait = (): void => {
    commit()
    for (const instr of pending.values()) out.push(waitOf(instr, 0))
    pending.clear()
  }
  for (const s of list) {
    const started = onlyStarts(s)
    if (started.length > 0) {
      commit(started.length === 1 ? started[0]!.name : undefined)
      for (const instr of started) open.set(instr.name, instr)
    } else if (s.kind === 'instr') {
      // A group that stands here already is the pipeline's.
      open.clear()
    } else if (s.kind !== 'alloc') wait()
    out.push(started.length > 0 ? s : settle(s))
  }
  wait()
  return out.length === list.length && out.every((s, k) => s === list[k]) ? list : Object.freeze(out)
}

/** The asynchronous instructions that do all a statement does; none where it does anything else. */
export function onlyStarts(s: Stmt): readonly Instr[] {
  const found = new Map<string, Instr>()
  let others = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && x.mode.kind === 'instr' && x.mode.instr.asynchronous) {
      found.set(x.mode.instr.name, x.mode.instr)
      return false
    }
    if (x.kind === 'instr' || targetsOf(x).length > 0) others = true
    return true
  })
  return others ? [] : [...found.values()]
}
