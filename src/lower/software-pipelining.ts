/**
 * Software pipelining (Lam, PLDI 1988). Invariant reached: no loop is pipelined. What copies into shared memory in iteration
 * `k` runs `stages - 1` iterations earlier, into one of `stages` copies of that memory, the one that iteration `k` finds at
 * `k mod stages`:
 *
 *     copies of iterations 0 … stages - 2
 *     for k: start the copies of k + stages - 1; compute k; end them
 *
 * Copies by asynchronous instructions are committed as one group an iteration and waited for by number. The others start
 * with loads into registers and end with stores to shared memory, so that computing hides the loads on any target. Copies
 * that count their bytes go by mbarriers (`transaction-barriers.ts`).
 *
 * Memory may be filled again when all threads have computed what was in it, which they know where they met after that.
 * Computing that is ordered (asynchronous itself) goes on while the next iteration's begins; it is known to be over one
 * round later, when the threads meet between starting to compute and starting copies:
 *
 *     for k: wait for the copies of k; start to compute k; wait until k - 1 is computed; meet;
 *            start the copies of k + stages - 1, where k - 1 was
 *
 * What threads copied in groups they see of each other after they met once more, at the end of the round.
 */

import { copiesIn } from '../analysis/shared-memory-copies.ts'
import { writesOf } from '../ir/accesses.ts'
import { allocatedIn, boundVarsOf, renameBound, sameStmts } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
import { namesOf } from '../ir/bound-names.ts'
import { bodyAt } from '../ir/clone-loops.ts'
import { loopsOf } from '../ir/definitions.ts'
import { add, bool, type Expr, int, load, lt, mod, variable } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import { commitGroup, endTogether, type Instr, waitGroup } from '../ir/instr.ts'
import type { Buffer, For, Kernel2, Stmt, Store } from '../ir/loops.ts'
import { alloc, when, whenAll } from '../ir/statement-builders.ts'
import { type Body, bodiesOf, type Rewriter, rewriteStmts, stmt, walkStmts, withBodies } from '../ir/tree.ts'
import { addressesAhead, addressesOnce } from './address-prefetch.ts'
import { asynchronousInstrs } from './async-commit-wait.ts'
import { blockInvariantCopies } from './cluster-multicast.ts'
import { canRunUnconditionally, refuseConditions } from './pipeline-predication.ts'
import { BLOCK_BARRIER, type Preheader, TransactionBarrier, withPreheaders } from './transaction-barriers.ts'

/** Elements that a thread holds between the start and the end of its copies. */
const MOST_REGISTERS = 64

export function pipelineLoops(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const memory = allocatedIn(kernel.body)
  // Each statement of the kernel is a launch, and what became of one loop stays in one.
  const nests = kernel.body.map((s): Stmt => {
    const preheaders: Preheader[] = []
    const pipelined: Rewriter = {
      stmt: (x) => {
        if (x.kind !== 'for' || x.mode.kind !== 'pipeline') return undefined
        const expanded = expandLoop(x, x.mode.stages, s, memory, names)
        preheaders.push(...expanded.preheaders)
        return expanded.body
      },
    }
    const own = withPreheaders(rewriteStmts([s], pipelined), preheaders)
    return own.length === 1 ? own[0]! : when(bool(true), own)
  })
  return nests.every((s, k) => s === kernel.body[k]) ? kernel : { ...kernel, body: nests }
}

interface Expanded {
  readonly body: Body
  readonly preheaders: readonly Preheader[]
}

/** `top`: the nest that the loop is in. `memory`: what is allocated, in shared memory and registers. */
function expandLoop(
  loop: For,
  stages: number,
  top: Stmt,
  memory: ReadonlySet<string>,
  names: Names,
): Expanded {
  const { statements, buffers } = copiesIn(loop)
  const serial = { kind: 'serial' } as const
  if (statements.length === 0) return { body: [stmt({ ...loop, mode: serial })], preheaders: [] }
  const staged = new Set(buffers.map((b) => b.name))
  const written = writesOf(loop.body)
  const stable = (b: string): boolean => !written.has(b) && !memory.has(b)
  const once = addressesOnce(statements, loop, stable, names)
  const copies = { ...loop, body: once.copies }
  const at = (iteration: Expr): Body =>
    inStage(bodyAt(copies, iteration, names), staged, mod(iteration, int(stages)))

  const rest = loop.body.filter(
    (s) => !statements.includes(s) && !(s.kind === 'alloc' && staged.has(s.buffer.name)),
  )
  const kinds = asynchronousIn(statements)
  const barriers = kinds
    .filter((i) => i.asynchronous?.mbarrier)
    .map((i) => {
      const own = statements.filter((s) => asynchronousIn([s]).some((x) => endTogether(x, i)))
      if (loop.guards.length > 0 && !canRunUnconditionally(own, statements, i)) refuseConditions(loop, i)
      return new TransactionBarrier(
        i,
        own,
        stages,
        loop,
        top,
        names,
        blockInvariantCopies(own, loop, top, memory),
      )
    })
  const groups = kinds.filter((i) => !i.asynchronous?.mbarrier)
  const ordered = statements.every((s) => asynchronousInstrs(s).length > 0) ? orderedInstr(rest) : undefined
  const distance = stages - 1
  const commit = groups.map(commitGroup)
  const wait = groups.map((i) => waitGroup(i, distance - 1))
  // Rounds that are counted are all copied.
  const guardsAt = (iteration: Expr): readonly Expr[] =>
    (barriers.length > 0 ? [] : loop.guards).map((g) => substitute(g, new Map([[loop.var, iteration]])))
  const inRound = (iteration: Expr, body: Body): Body =>
    body.length === 0 ? [] : whenAll([lt(iteration, loop.extent), ...guardsAt(iteration)], body)
  const started = (iteration: Expr, body: Body): Body => [
    ...barriers.flatMap((c) => [c.expect(iteration), ...c.release(iteration)]),
    ...barriers.reduce((b, c) => c.start(b, iteration), body),
  ]
  const prologue = Array.from({ length: distance }, (_, k) => [
    ...inRound(int(k), started(int(k), at(int(k)))),
    ...commit,
  ]).flat()

  const now = variable(loop.var)
  const ahead = add(now, int(distance))
  const later = at(ahead)
  const addresses = addressesAhead(later, loop, ahead, guardsAt(ahead), stable, names)
  const moved = addresses.copies.map((s, k) => splitCopy(s, later[k]!, names))
  const start = [
    ...inRound(
      ahead,
      started(
        ahead,
        moved.map((m) => m.start),
      ),
    ),
    ...commit,
    ...addresses.fill(add(now, int(1))),
  ]
  const compute = [
    ...barriers.map((c) => c.wait(now)),
    ...whenAll(loop.guards, inStage(rest, staged, mod(now, int(stages)))),
    ...(ordered ? [commitGroup(ordered), waitGroup(ordered, 1), BLOCK_BARRIER] : []),
  ]
  const body = [
    ...buffers.map((b) => alloc(Object.freeze({ ...b, shape: [int(stages), ...b.shape] }))),
    ...barriers.flatMap((c) => c.setup),
    ...once.setup,
    ...prologue,
    ...addresses.registers.map((b) => alloc(b)),
    ...addresses.fill(int(0)),
    ...wait,
    stmt<For>({
      ...loop,
      mode: serial,
      guards: [],
      body: [
        ...moved.flatMap((m) => (m.inFlight ? [alloc(m.inFlight)] : [])),
        // Computing that does not wait for itself starts first.
        ...(asynchronousIn(rest).length > 0 ? [...compute, ...start] : [...start, ...compute]),
        ...inRound(
          ahead,
          moved.flatMap((m) => (m.end ? [m.end] : [])),
        ),
        ...wait,
        ...(barriers.length > 0 && !ordered ? [BLOCK_BARRIER] : []),
      ],
    }),
    ...(ordered ? [waitGroup(ordered, 0)] : []),
    ...barriers.flatMap((c) => c.end(loop.extent)),
  ]
  return { body, preheaders: barriers.flatMap((c) => c.preheaders) }
}

/** The accesses to `buffers`, in one of their stages. */
const inStage = (body: Body, buffers: ReadonlySet<string>, stage: Expr): Body =>
  rewriteStmts(body, {
    expr: (e) =>
      e.kind === 'load' && buffers.has(e.buffer)
        ? load(e.buffer, [stage, ...e.index], e.dtype, e.span)
        : undefined,
    stmt: (s) =>
      s.kind === 'store' && buffers.has(s.buffer) ? stmt({ ...s, index: [stage, ...s.index] }) : undefined,
  })

/** The ordered instruction that alone computes, if that is so: iterations need not wait for each other's. */
function orderedInstr(rest: Body): Instr | undefined {
  const started = rest.filter((s) => s.kind !== 'alloc').map(asynchronousInstrs)
  const [first] = started[0] ?? []
  return started.every((l) => l.length === 1 && l[0] === first) && first?.asynchronous?.ordered
    ? first
    : undefined
}

/** Asynchronous instructions that carry copies out, one of each kind. */
function asynchronousIn(body: Body): readonly Instr[] {
  const all = loopsOf(body).flatMap(({ mode }) =>
    mode.kind === 'instr' && mode.instr.asynchronous ? [mode.instr] : [],
  )
  return all.filter((i, k) => all.findLastIndex((x) => endTogether(x, i)) === k)
}

/** A copy as its start and, where it can be taken apart, its end; `inFlight` keeps the elements in between. */
interface SplitCopy {
  readonly start: Stmt
  readonly end?: Stmt
  readonly inFlight?: Buffer
}

/** `plain` is the copy with addresses that stay what they are until it ends. */
function splitCopy(copy: Stmt, plain: Stmt, names: Names): SplitCopy {
  const shape = inFlightShape(copy)
  if (!shape) return { start: copy }
  const to = firstStore(copy)!
  const inFlight: Buffer = Object.freeze({
    name: names.fresh(`${to.buffer}_ahead`),
    dtype: to.value.dtype,
    scope: 'register',
    role: 'local',
    shape: shape.length > 0 ? shape.map(int) : [int(1)],
    fill: 0,
    accumulate: to.value.dtype,
  })
  const rename = new Map([...boundVarsOf([plain])].map((v) => [v, names.fresh(v)]))
  const start = eachStore(copy, [], (s, at) => stmt({ ...s, buffer: inFlight.name, index: at }))
  const end = eachStore(renameBound([plain], rename)[0]!, [], (s, at) =>
    stmt({ ...s, value: load(inFlight.name, at, inFlight.dtype) }),
  )
  return { start, end: withoutChoice(end), inFlight }
}

/**
 * The extents of the loops in a copy, the same around all of its stores; nothing where a thread cannot hold what it
 * copies, or an instruction does it.
 */
function inFlightShape(copy: Stmt): readonly number[] | undefined {
  const shapes = new Set<string>()
  let shape: readonly number[] = []
  let plain = true
  walkStmts([copy], (s, path) => {
    if (s.kind === 'for')
      plain &&= s.extent.kind === 'const' && s.mode.kind !== 'bind' && s.mode.kind !== 'instr'
    else if (s.kind === 'store') {
      shape = path.map((l) => (l.extent.kind === 'const' ? l.extent.value : 0))
      shapes.add(`${s.buffer} ${shape}`)
    } else plain &&= s.kind === 'if'
  })
  const size = shape.reduce((a, b) => a * b, 1)
  return plain && shapes.size === 1 && size > 0 && size <= MOST_REGISTERS ? shape : undefined
}

function firstStore(copy: Stmt): Store | undefined {
  let found: Store | undefined
  walkStmts([copy], (s) => {
    if (s.kind === 'store') found ??= s
  })
  return found
}

/** The statement with its loops unrolled and each store replaced; `at` are the loops around it. */
function eachStore(s: Stmt, around: readonly Expr[], f: (s: Store, at: readonly Expr[]) => Store): Stmt {
  if (s.kind === 'store') return f(s, around.length > 0 ? around : [int(0)])
  if (s.kind !== 'for')
    return withBodies(
      s,
      bodiesOf(s).map((b) => b.map((x) => eachStore(x, around, f))),
    )
  const body = s.body.map((x) => eachStore(x, [...around, variable(s.var)], f))
  const mode = s.mode.kind === 'serial' ? ({ kind: 'unroll', factor: null } as const) : s.mode
  return stmt<For>({ ...s, mode, body })
}

/** Of branches that do the same, one. */
function withoutChoice(s: Stmt): Stmt {
  if (s.kind === 'if' && s.else.length > 0 && sameStmts(s.then, s.else) && s.then.length === 1)
    return withoutChoice(s.then[0]!)
  return withBodies(
    s,
    bodiesOf(s).map((b) => b.map(withoutChoice)),
  )
}
