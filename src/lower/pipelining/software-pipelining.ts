/**
 * Software pipelining (Lam, PLDI 1988). Invariant reached: no loop has the mode `pipeline`. Copies into shared memory for iteration `k`
 * run `stages - 1` iterations earlier, into buffer `k mod stages` of `stages`:
 *
 *     copies of iterations 0 … stages - 2
 *     for k: start the copies of k + stages - 1; compute k; end them
 *
 * Asynchronous copies are committed in one group per iteration, and awaited by number. Other copies start with loads into registers and
 * end with stores to shared memory, so that computation hides the loads on any target. Copies that count bytes use mbarriers
 * (`transaction-barriers.ts`).
 *
 * A buffer may be refilled after all threads have computed with it and passed a barrier. Asynchronous ordered instructions
 * continue during the next iteration, so their end is known one iteration later, at the barrier between compute and copies:
 *
 *     for k: wait for the copies of k; start to compute k; wait until k - 1 is computed; barrier;
 *            start the copies of k + stages - 1 into the buffer of k - 1
 *
 * Copies in groups become visible to other threads at the barrier at the end of an iteration.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { copiesIn, type PipelineSequence, pipelineSequence } from '../../analysis/loops/pipeline-sequence.ts'
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { add, bool, type Expr, int, mod, variable } from '../../ir/expressions/expr.ts'
import { children, mentionsSome, substitute } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { commitGroup, type Instr, sharesCompletion, waitGroup } from '../../ir/instructions/instr.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames, redirectAccesses, substituteStmts } from '../../ir/statements/bindings.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { loopsOf, replaceLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { alloc, when, whenAll } from '../../ir/statements/statement-builders.ts'
import {
  type Body,
  exprsOf,
  mapBodies,
  type Rewriter,
  rewriteStmts,
  someStmt,
  stmt,
} from '../../ir/statements/tree.ts'
import { addressesAhead, addressesOnce, pipelineInvariants } from './address-prefetch.ts'
import { asynchronousInstrs } from './async-wait-insertion.ts'
import { blockInvariantCopies } from './cluster-multicast.ts'
import { splitCopy } from './copy-in-flight.ts'
import { loopCursor, sequenceCursor } from './pipeline-cursor.ts'
import { BLOCK_BARRIER, type Preheader, transactionBarrier, withPreheaders } from './transaction-barriers.ts'

export function injectSoftwarePipelines(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const memory = allocatedNames(kernel.body)
  const facts = new Facts({ sizes: kernel.facts })
  // Each top-level statement is one launch, so the result of one loop stays in one statement.
  const nests = kernel.body.map((nest): Stmt => {
    const s = allThreadsPipelining(nest)
    const surroundings = { top: s, memory, buffers: kernel.buffers, facts, names }
    let preheaders: readonly Preheader[] = []
    // An enclosing pipeline adds its stage to preheaders inside it, so they are placed as soon as their loop is reached.
    const pipelined: Rewriter = {
      stmt: (x) => {
        if (x.kind !== 'for') return undefined
        let body: Body | undefined
        if (x.mode.kind === 'pipeline') {
          const sequence = x.mode.continued && sequenceOf(s, x.var)
          const expanded = expandLoop(x, x.mode.stages, sequence, surroundings)
          preheaders = [...preheaders, ...expanded.preheaders]
          body = expanded.body
        }
        const here = preheaders.filter((p) => p.loop === x.var)
        preheaders = preheaders.filter((p) => p.loop !== x.var)
        return here.length > 0 ? withPreheaders(body ?? [x], here) : body
      },
    }
    const statements = rewriteStmts([s], pipelined)
    return statements.length === 1 ? statements[0]! : when(bool(true), statements)
  })
  return nests.every((s, k) => s === kernel.body[k]) ? kernel : { ...kernel, body: nests }
}

/** Moves guards inside, so that all threads of a block run all iterations of a pipeline across outer iterations. */
function allThreadsPipelining(nest: Stmt): Stmt {
  return loopsOf([nest]).reduce((top, { mode, var: name }) => {
    if (mode.kind !== 'pipeline' || !mode.continued) return top
    const { over, loop } = sequenceOf(top, name)
    return replaceLoop([top], over.var, (l) => guardsInside(l, loop, copiesIn(loop).statements))[0]!
  }, nest)
}

/** Returns the loop over which a pipeline continues. Throws SptError `schedule/not-one-sequence` if earlier passes broke the sequence. */
function sequenceOf(top: Stmt, name: string): PipelineSequence {
  const sequence = pipelineSequence([top], name)
  if ('over' in sequence) return sequence
  const loop = sequence.loops.at(-1)!
  return failAt('schedule/not-one-sequence', loop.span, {
    message: sequence.message,
    expected: sequence.expected,
  })
}

interface Expanded {
  readonly body: Body
  readonly preheaders: readonly Preheader[]
}

interface Surroundings {
  readonly top: Stmt
  /** Names of allocated buffers, in shared memory and registers. */
  readonly memory: ReadonlySet<string>
  readonly buffers: readonly Buffer[]
  readonly facts: Facts
  readonly names: Names
}

function expandLoop(
  loop: For,
  stages: number,
  sequence: PipelineSequence | undefined,
  { top, memory, buffers: stored, facts, names }: Surroundings,
): Expanded {
  const { statements, buffers } = copiesIn(loop)
  const serial = { kind: 'serial' } as const
  if (statements.length === 0) return { body: [stmt({ ...loop, mode: serial })], preheaders: [] }
  const cursor = sequence ? sequenceCursor(sequence, loop, stages, top, stored, names) : loopCursor(loop)
  const staged = new Set(buffers.map((b) => b.name))
  const written = writesOf(loop.body)
  const stable = (b: string): boolean => !written.has(b) && !memory.has(b)
  const tile = sequence && pipelineInvariants(statements, loop, sequence.over, facts, names)
  const once = addressesOnce(tile?.copies ?? statements, loop, stable, names, sequence?.over)
  const enter = (): Body => [...(tile?.fill() ?? []), ...once.fill()]
  const copiesOf = (k: Expr): Body =>
    inStage(
      copyStatements(substituteStmts(once.copies, cursor.at(k)), names),
      staged,
      mod(cursor.number(k), int(stages)),
    )

  const rest = loop.body.filter(
    (s) => !statements.includes(s) && !(s.kind === 'alloc' && staged.has(s.buffer.name)),
  )
  const kinds = asynchronousIn(statements)
  const barriers = kinds
    .filter((i) => i.asynchronous?.mbarrier)
    .map((i) => {
      const copies = statements.filter((s) => asynchronousIn([s]).some((x) => sharesCompletion(x, i)))
      if (loop.guards.length > 0 && !canRunUnconditionally(copies, statements, i)) rejectConditions(loop, i)
      const together = blockInvariantCopies(copies, loop, top, memory)
      if (together && sequence) rejectCluster(loop)
      return transactionBarrier(i, copies, stages, loop, top, names, together, sequence !== undefined)
    })
  const groups = kinds.filter((i) => !i.asynchronous?.mbarrier)
  const ordered = statements.every((s) => asynchronousInstrs(s).length > 0) ? orderedInstr(rest) : undefined
  const distance = stages - 1
  const commit = groups.map(commitGroup)
  const wait = groups.map((i) => waitGroup(i, distance - 1))
  // With mbarriers, the copies of all iterations run.
  const guardsOf = (k: Expr): readonly Expr[] =>
    (barriers.length > 0 ? [] : loop.guards).map((g) => substitute(g, cursor.at(k)))
  const inRound = (k: Expr, body: Body): Body =>
    body.length === 0 ? [] : whenAll([cursor.exists(k), ...guardsOf(k)], body)
  const started = (k: Expr, body: Body): Body => {
    const number = cursor.number(k)
    const copies = barriers.reduce((b, c) => c.start(b, number), body)
    return inRound(k, [...barriers.flatMap((c) => [c.expect(number), ...c.release(number)]), ...copies])
  }

  const iteration = variable(loop.var)
  const after = add(iteration, int(distance))
  const now = cursor.number(iteration)
  const first = cursor.begin(enter)
  const prologue = cursor.prologue(distance, (k) => [...started(k, copiesOf(k)), ...commit], enter)
  const later = copiesOf(after)
  const addresses = addressesAhead(later, guardsOf(after), cursor.moves, stable, names)
  const moved = addresses.copies.map((s, k) => splitCopy(s, later[k]!, names))
  const copies = moved.map((m) => m.start)
  const start = [...started(after, copies), ...commit]
  const ends = moved.flatMap((m) => (m.end ? [m.end] : []))
  const end = inRound(after, ends)
  const advance = [...cursor.advance(enter), ...cursor.fill(addresses, add(iteration, int(1)), distance)]
  const compute = [
    ...barriers.map((c) => c.wait(now)),
    ...whenAll(loop.guards, inStage(rest, staged, mod(now, int(stages)))),
    ...(ordered ? [commitGroup(ordered), waitGroup(ordered, 1), BLOCK_BARRIER] : []),
  ]
  // The end of a copy uses the cursor, so the cursor advances after it.
  const late = sequence !== undefined && end.length > 0
  const begun = late ? start : [...start, ...advance]
  const setup = [
    ...buffers.map((b) => alloc(Object.freeze({ ...b, shape: [int(stages), ...b.shape] }))),
    ...barriers.flatMap((c) => c.setup),
    ...[...(tile?.registers ?? []), ...once.registers].map((b) => alloc(b)),
    ...first,
    ...prologue,
    ...addresses.registers.map((b) => alloc(b)),
    ...cursor.fill(addresses, int(0), distance),
    ...wait,
  ]
  const { before, preheaders } = cursor.placed(setup)
  const body = [
    ...before,
    stmt<For>({
      ...loop,
      mode: serial,
      guards: [],
      body: [
        ...moved.flatMap((m) => (m.inFlight ? [alloc(m.inFlight)] : [])),
        // Asynchronous computation starts before the copies.
        ...(asynchronousIn(rest).length > 0 ? [...compute, ...begun] : [...begun, ...compute]),
        ...end,
        ...(late ? advance : []),
        ...wait,
        ...(barriers.length > 0 && !ordered ? [BLOCK_BARRIER] : []),
      ],
    }),
    ...(ordered ? [waitGroup(ordered, 0)] : []),
    ...cursor.end,
    ...barriers.flatMap((c) => c.end(loop.extent)),
  ]
  return { body, preheaders: [...barriers.flatMap((c) => c.preheaders), ...preheaders] }
}

/** Adds the stage as the first index to accesses of `buffers`. */
const inStage = (body: Body, buffers: ReadonlySet<string>, stage: Expr): Body =>
  redirectAccesses(body, ({ buffer, index }) =>
    buffers.has(buffer) ? { buffer, index: [stage, ...index] } : undefined,
  )

/** The ordered instruction that does all the computation, so that iterations need not wait for each other; otherwise undefined. */
function orderedInstr(rest: Body): Instr | undefined {
  const started = rest.filter((s) => s.kind !== 'alloc').map(asynchronousInstrs)
  const [first] = started[0] ?? []
  return started.every((l) => l.length === 1 && l[0] === first) && first?.asynchronous?.ordered
    ? first
    : undefined
}

/** Asynchronous instructions in the body, one per way of completion. */
function asynchronousIn(body: Body): readonly Instr[] {
  const all = loopsOf(body).flatMap(({ mode }) =>
    mode.kind === 'instr' && mode.instr.asynchronous ? [mode.instr] : [],
  )
  return all.filter((i, k) => all.findLastIndex((x) => sharesCompletion(x, i)) === k)
}

// Guards of software-pipelined loops. If copies count bytes on an mbarrier, those of every iteration run, or the loop is rejected. No
// divergent guard encloses a loop that all threads of a block must run: other statements get such a guard individually (guard sinking).

/**
 * Returns true if counted copies may run regardless of the loop's guards. They must copy boxes of a matrix, because elements beyond its
 * end are zero-filled, with at most one level of indirect addressing.
 */
function canRunUnconditionally(copies: Body, all: Body, instr: Instr): boolean {
  const loads = (e: Expr, depth: number): boolean =>
    (e.kind === 'load' && depth === 0) ||
    children(e).some((x) => loads(x, e.kind === 'load' ? depth - 1 : depth))
  const loadsMore = (s: Stmt): boolean => exprsOf(s).some((e) => loads(e, s.kind === 'store' ? 2 : 1))
  const plain = instr.operands.every((o) => o.scope !== 'global' || o.mapped)
  return copies.length === all.length && plain && !someStmt(copies, loadsMore)
}

/** Throws `schedule/conditional-rounds`: skipped iterations are not counted, so consumers would wait for the wrong one. */
const rejectConditions = (loop: For, instr: Instr): never =>
  failAt('schedule/conditional-rounds', loop.span, {
    message: `iterations of ${loop.name} run under conditions, and ${instr.name} counts the copies of every iteration`,
    expected:
      'a pipelined loop without skipped iterations, or copies of boxes at addresses from a single load',
    hint: 'copy by threads, or by an instruction that is waited for in groups',
  })

/**
 * Throws `schedule/not-one-sequence`: blocks of a cluster agree on the iterations of one loop, but not of a pipeline across outer
 * iterations.
 */
const rejectCluster = (loop: For): never =>
  failAt('schedule/not-one-sequence', loop.span, {
    message: `blocks of a cluster copy for each other in ${loop.name}, which goes on into the next iterations around`,
    expected: 'no cluster, or a pipeline that ends with the loop',
  })

/** Moves divergent guards in `over` inside `loop`, except around the statements `alone`. */
function guardsInside(over: For, loop: For, alone: Body): For {
  const holds = (s: Stmt): boolean => someStmt([s], (x) => x === loop)
  const within = (list: Body, guards: readonly Expr[], threads: ReadonlySet<string>): Body =>
    list.flatMap((s): Body => {
      if (s.kind === 'alloc' || alone.includes(s)) return [s]
      if (s === loop) return [stmt({ ...loop, body: within(loop.body, guards, threads) })]
      if (!holds(s)) return whenAll(guards, [s])
      if (s.kind !== 'for') return [mapBodies(s, (b) => within(b, guards, threads))]
      const boundVars = boundIndex(s, 'thread') ? new Set([...threads, s.var]) : threads
      const threadGuards = s.guards.filter((g) => mentionsSome(g, boundVars))
      const body = within(s.body, [...guards, ...threadGuards], boundVars)
      return [stmt({ ...s, guards: s.guards.filter((g) => !threadGuards.includes(g)), body })]
    })
  return stmt({ ...over, body: within(over.body, [], new Set()) })
}
