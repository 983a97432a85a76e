/**
 * Insertion of commit and wait groups for asynchronous instructions (`cp.async`). Invariant reached: asynchronous work is committed and
 * awaited before a statement that depends on it. Independent asynchronous work may start in between. The copies of a software pipeline
 * have their own groups; this pass handles the other instructions.
 * Asynchronous stores (`async-wait-insertion.ts`) are awaited one iteration later, before their source is overwritten.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { bool, int } from '../../ir/expressions/expr.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import { commitGroup, sharesCompletion, waitGroup, waitRead } from '../../ir/instructions/instr.ts'
import { mapSame, reuseIfSame } from '../../ir/lists.ts'
import { accessesOf, readsOf, targetsOf, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, mapBodies, walkStmts, withBody } from '../../ir/statements/tree.ts'
import { BLOCK_BARRIER, type Preheader, transactionBarrier, withPreheaders } from './transaction-barriers.ts'

export function insertAsyncWaits(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (s) => awaitInsertion(s, names))
  return withBody(kernel, body)
}

function awaitInsertion(top: Stmt, names: Names) {
  const preheaders: Preheader[] = []
  const outgoing = outgoingCopies(top, startsOf)
  const waitsIn = (list: Body): Body => {
    const out: Stmt[] = []
    const open = new Map<string, Instr>()
    const pending = new Map<string, Instr>()
    /** Asynchronous statements in flight, which may read and write until they are awaited. */
    let running: Stmt[] = []
    const commit = (but?: string): void => {
      for (const [name, instr] of open) {
        if (name === but) continue
        out.push(commitGroup(instr))
        open.delete(name)
        pending.set(name, instr)
      }
    }
    const wait = (): void => {
      commit()
      for (const instr of pending.values()) out.push(waitGroup(instr, 0))
      pending.clear()
      running = []
    }
    for (const s of list) {
      for (const instr of outgoing.before.get(s) ?? []) out.push(waitRead(instr), BLOCK_BARRIER)
      const started = startsOf(s)
      if (started.some((i) => i.asynchronous?.mbarrier)) {
        wait()
        out.push(...transactionRound(s, started))
        continue
      }
      if (started.length > 0) {
        if (running.some((r) => needs(r, s) || needs(s, r))) wait()
        running.push(s)
        commit(started.length === 1 ? started[0]!.name : undefined)
        for (const instr of started) open.set(instr.name, instr)
      } else if (s.kind === 'instr') {
        // An existing commit or wait group belongs to a software pipeline.
        open.clear()
        running = []
      } else if (s.kind !== 'alloc') wait()
      out.push(started.length > 0 ? s : mapBodies(s, (b) => waitsIn(b)))
      for (const instr of outgoing.after.get(s) ?? []) out.push(waitRead(instr))
    }
    const { copies, carried } = outgoing
    if (running.length === 0 || !running.every((s) => copies.has(s))) wait()
    else {
      commit()
      if (!running.every((s) => carried.has(s))) for (const i of pending.values()) out.push(waitRead(i))
    }
    return reuseIfSame(list, out)
  }
  /** Returns one iteration of copies that count their bytes on an mbarrier: barrier set-up, copies, wait. */
  const transactionRound = (s: Stmt, [instr]: readonly Instr[]): Body => {
    const [loop] = loopsOf([s])
    invariant(instr && loop, 'an instruction is a loop')
    const round = transactionBarrier(instr, [s], 1, loop, top, names)
    preheaders.push(...round.preheaders)
    const one = int(0)
    return [
      ...round.setup,
      round.expect(one),
      ...round.start([s], one),
      round.wait(one),
      ...round.end(int(1)),
    ]
  }
  const statements = withPreheaders(waitsIn([top]), preheaders)
  return statements.length === 1 ? statements[0]! : when(bool(true), statements)
}

/** Returns true if `a` writes a buffer that `b` reads. Asynchronous reductions into one buffer need no wait. */
function needs(a: Stmt, b: Stmt): boolean {
  const written = writesOf([a])
  return [...readsOf([b])].some((x) => written.has(x))
}

/**
 * Returns the asynchronous instructions that `s` starts and that a wait after `s` covers. Empty if they complete in different ways,
 * because then they are awaited inside `s`.
 */
function startsOf(s: Stmt): readonly Instr[] {
  const all = asynchronousInstrs(s)
  return all.every((i) => sharesCompletion(i, all[0]!)) ? all : []
}

/** Returns the asynchronous instructions of `s`. Empty if `s` also contains other work. */
export function asynchronousInstrs(s: Stmt): readonly Instr[] {
  const instrs = new Map<string, Instr>()
  let others = false
  walkStmts([s], (x) => {
    if (x.kind === 'for' && x.mode.kind === 'instr' && x.mode.instr.asynchronous) {
      // Copies with a barrier of their own are awaited at this barrier.
      if (!x.mode.signals) instrs.set(x.mode.instr.name, x.mode.instr)
      return false
    }
    if ((x.kind === 'instr' && !x.once) || targetsOf(x).length > 0) others = true
    return true
  })
  return others ? [] : [...instrs.values()]
}

// Asynchronous copies out of shared memory (bulk stores) that overlap the next iteration. The launch does not
// read what they write, and an instruction waits until they have read their source. So the next iteration
// waits only before it overwrites this source.

interface Outgoing {
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
function outgoingCopies(top: Stmt, startsOf: (s: Stmt) => readonly Instr[]): Outgoing {
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
