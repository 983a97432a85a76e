/**
 * Lockstep execution of the threads of a block from barrier to barrier, and of neighbouring lanes from exchange to exchange;
 * the blocks of a cluster run together. All threads have to arrive at the same statement, otherwise it is an `InternalError`.
 */
import { InternalError } from '../ast/diagnostics/diagnostic.ts'
import type { Stmt } from '../ir/statements/loops.ts'
import { someStmt } from '../ir/statements/tree.ts'
import { compile, compileAs, compileCombine, compileExpr, type Frame } from './thread-code.ts'

/** The work of a thread as an iterator that yields at each point where it waits for other threads. */
type ThreadProgram = (f: Frame) => Generator<Stop, void>

/** A point where a thread waits: a barrier, an exchange between lanes, or an instruction, which the thread polls itself. */
interface Stop {
  readonly stmt: Stmt
  readonly lane?: { readonly xor: number; readonly among: number } | undefined
}

const canStop = (s: Stmt): boolean =>
  s.kind === 'barrier' ||
  s.kind === 'instr' ||
  (s.kind === 'reduce' && s.lanes !== undefined) ||
  (s.kind === 'let' && s.lane !== undefined)

/** Compiles a body: statements without wait points to plain closures, others to generators that yield at each wait point. */
export function compileBody(body: readonly Stmt[]): ThreadProgram {
  const steps = body.map((s) =>
    someStmt([s], canStop) ? { waiting: compileStops(s) } : { plain: compile(s) },
  )
  return function* (f) {
    for (const s of steps)
      if (s.plain) s.plain(f)
      else yield* s.waiting(f)
  }
}

function compileStops(s: Stmt): ThreadProgram {
  switch (s.kind) {
    case 'barrier': {
      const stop = s.lanes ? { stmt: s, lane: { xor: 0, among: s.lanes.among } } : { stmt: s }
      return function* () {
        yield stop
      }
    }
    case 'instr': {
      const stop = { stmt: s }
      return function* (f) {
        if (!f.instructions)
          throw new InternalError(
            `what ${s.instr} does is known to devices only: interpret an earlier stage, or say it`,
          )
        for (const done = f.instructions.begin(s, f); !done(); ) yield stop
      }
    }
    case 'let': {
      const value = compileAs(s.value, s.dtype)
      const stop = { stmt: s, lane: s.lane }
      return function* (f) {
        f.laneValues[0] = value(f)
        yield stop
        f.vars.set(s.name, f.laneValues[0])
      }
    }
    case 'reduce': {
      const { first = 1, width, among } = s.lanes!
      const combine = compileCombine(s)
      const operands = s.values.map((v, k) => compileAs(v, s.reducer.right[k]!.dtype))
      return function* (f) {
        for (let mask = first; mask < width; mask *= 2) {
          operands.forEach((v, k) => {
            f.laneValues[k] = v(f)
          })
          yield { stmt: s, lane: { xor: mask, among } }
          combine(f, f.laneValues)
        }
      }
    }
    case 'for': {
      const extent = compileExpr(s.extent)
      const body = compileBody(s.body)
      return function* (f) {
        const n = extent(f)
        for (let k = 0; k < n; k++) {
          f.vars.set(s.var, k)
          yield* body(f)
        }
      }
    }
    case 'if': {
      const cond = compileExpr(s.cond)
      const then = compileBody(s.then)
      const otherwise = compileBody(s.else)
      return function* (f) {
        yield* cond(f) !== 0 ? then(f) : otherwise(f)
      }
    }
    default:
      throw new InternalError(`a barrier inside of ${s.kind}`)
  }
}

export type Threads = readonly { readonly run: Iterator<Stop, void>; readonly frame: Frame }[]

/** Runs the blocks of a cluster in turns, each up to its next barrier, until all are done. */
export function lockstep(name: string, cluster: readonly Threads[]): void {
  const blocks = cluster.map((threads) => blockOf(name, threads))
  while (blocks.some((b) => b.state !== 'done')) {
    for (const b of blocks) b.step()
    if (!blocks.some((b) => b.state === 'cluster')) continue
    if (blocks.some((b) => b.state === 'done'))
      throw new InternalError(`${name}: blocks of a cluster miss a barrier`)
    if (blocks.every((b) => b.state === 'cluster')) for (const b of blocks) b.passBarrier()
  }
}

function blockOf(name: string, threads: Threads) {
  let epoch = 0
  /** `cluster`: all threads wait at a barrier of the cluster. */
  let state: 'running' | 'cluster' | 'done' = 'running'
  const results = threads.map((t) => t.run.next())
  /** Runs to the next barrier, or polls the threads waiting at instructions once. */
  const step = (): void => {
    if (state !== 'running') return
    while (runExchanges(threads, results)) {}
    if (retryInstructions(threads, results)) return
    const finished = results.filter((r) => r.done).length
    if (finished > 0 && finished < threads.length)
      throw new InternalError(`${name}: ${finished} of ${threads.length} threads miss a barrier`)
    if (finished > 0) {
      state = 'done'
      return
    }
    const first = results[0]!.value
    if (!first || first.lane || results.some((r) => r.value?.stmt !== first.stmt))
      throw new InternalError(`${name}: threads of a block wait at different barriers`)
    if (first.stmt.kind === 'barrier' && first.stmt.cluster) state = 'cluster'
    else passBarrier()
  }
  /** Continues all threads after the barrier that they have reached. */
  const passBarrier = (): void => {
    state = 'running'
    epoch++
    threads.forEach((t, k) => {
      t.frame.state.epoch = epoch
      results[k] = t.run.next()
    })
  }
  return {
    get state() {
      return state
    },
    step,
    passBarrier,
  }
}

/** Continues the threads that wait at instructions; returns true if there are any. */
function retryInstructions(threads: Threads, results: IteratorResult<Stop, void>[]): boolean {
  let retried = false
  for (const [k, r] of results.entries()) {
    if (r.value?.stmt.kind !== 'instr') continue
    results[k] = threads[k]!.run.next()
    retried = true
  }
  return retried
}

/** Runs the exchanges that all lanes of a group have reached; returns true if there are any. */
function runExchanges(threads: Threads, results: IteratorResult<Stop, void>[]): boolean {
  let exchanged = false
  for (let k = 0; k < results.length; k++) {
    const stop = results[k]!.value
    if (!stop?.lane || k % stop.lane.among !== 0) continue
    const { xor, among } = stop.lane
    const group = results.slice(k, k + among)
    if (group.some((r) => r.value?.stmt !== stop.stmt || r.value.lane?.xor !== xor)) continue
    const groupValues = group.map((_, n) => [...threads[k + n]!.frame.laneValues])
    group.forEach((_, n) => {
      const partnerValues = groupValues[n ^ xor]
      if (!partnerValues) throw new InternalError(`thread ${k + n} exchanges with one that is not there`)
      threads[k + n]!.frame.laneValues.splice(0, Number.POSITIVE_INFINITY, ...partnerValues)
      if (stop.stmt.kind === 'barrier') threads[k + n]!.frame.state.phase++
      results[k + n] = threads[k + n]!.run.next()
    })
    exchanged = true
  }
  return exchanged
}
