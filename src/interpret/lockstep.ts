/**
 * Lockstep execution of the threads of a block from barrier to barrier, and of neighbouring lanes from exchange to exchange;
 * the blocks of a cluster run together. All threads have to arrive at the same statement, otherwise it is an `InternalError`.
 */
import { InternalError } from '../ast/diagnostic.ts'
import type { Stmt } from '../ir/loops.ts'
import { bodiesOf } from '../ir/tree.ts'
import { combining, compile, compileExpr, converted, type Frame } from './thread-code.ts'

/** The work of a thread as an iterator that yields at each point where it waits for other threads. */
type Waiting = (f: Frame) => Iterator<Stop, void>

/** A point where a thread waits: a barrier, an exchange between lanes, or an instruction, which the thread polls itself. */
export interface Stop {
  readonly stmt: Stmt
  readonly lane?: { readonly xor: number; readonly among: number } | undefined
}

const waits = (s: Stmt): boolean =>
  s.kind === 'barrier' ||
  s.kind === 'instr' ||
  (s.kind === 'reduce' && s.lanes !== undefined) ||
  (s.kind === 'let' && s.lane !== undefined) ||
  bodiesOf(s).some((b) => b.some(waits))

/** Statements without barriers are plain closures; the others are generators that yield where they wait. */
export function compileBody(body: readonly Stmt[]): Waiting {
  const steps = body.map((s) => (waits(s) ? { waiting: compileWaiting(s) } : { plain: compile(s) }))
  return function* (f) {
    for (const s of steps)
      if (s.plain) s.plain(f)
      else yield* iterate(s.waiting(f))
  }
}

function* iterate(it: Iterator<Stop, void>): Generator<Stop, void> {
  for (let r = it.next(); !r.done; r = it.next()) yield r.value
}

function compileWaiting(s: Stmt): Waiting {
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
      const value = converted(s.value, s.dtype)
      const stop = { stmt: s, lane: s.lane }
      return function* (f) {
        f.mail[0] = value(f)
        yield stop
        f.vars.set(s.name, f.mail[0])
      }
    }
    case 'reduce': {
      const { first = 1, width, among } = s.lanes!
      const take = combining(s)
      const own = s.values.map((v, k) => converted(v, s.reducer.right[k]!.dtype))
      return function* (f) {
        for (let xor = first; xor < width; xor *= 2) {
          own.forEach((v, k) => {
            f.mail[k] = v(f)
          })
          yield { stmt: s, lane: { xor, among } }
          take(f, f.mail)
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
          yield* iterate(body(f))
        }
      }
    }
    case 'if': {
      const cond = compileExpr(s.cond)
      const then = compileBody(s.then)
      const otherwise = compileBody(s.else)
      return function* (f) {
        yield* iterate(cond(f) !== 0 ? then(f) : otherwise(f))
      }
    }
    default:
      throw new InternalError(`a barrier inside of ${s.kind}`)
  }
}

export type Threads = readonly { readonly run: Iterator<Stop, void>; readonly frame: Frame }[]

/** The threads of the blocks of a cluster, those of each up to their next barrier, until all are done. */
export function lockstep(name: string, cluster: readonly Threads[]): void {
  const blocks = cluster.map((threads) => new Block(name, threads))
  while (blocks.some((b) => b.state !== 'done')) {
    for (const b of blocks) b.step()
    if (!blocks.some((b) => b.state === 'cluster')) continue
    if (blocks.some((b) => b.state === 'done'))
      throw new InternalError(`${name}: blocks of a cluster miss a barrier`)
    if (blocks.every((b) => b.state === 'cluster')) for (const b of blocks) b.pass()
  }
}

class Block {
  readonly #name: string
  readonly #threads: Threads
  readonly #at: IteratorResult<Stop, void>[]
  #epoch = 0
  /** `cluster`: all threads wait at a barrier of the cluster. */
  state: 'running' | 'cluster' | 'done' = 'running'

  constructor(name: string, threads: Threads) {
    this.#name = name
    this.#threads = threads
    this.#at = threads.map((t) => t.run.next())
  }

  /** Runs to the next barrier, or polls the threads waiting at instructions once. */
  step(): void {
    if (this.state !== 'running') return
    const [threads, at] = [this.#threads, this.#at]
    while (exchanges(threads, at)) {}
    if (retryInstructions(threads, at)) return
    const done = at.filter((r) => r.done).length
    if (done > 0 && done < threads.length)
      throw new InternalError(`${this.#name}: ${done} of ${threads.length} threads miss a barrier`)
    if (done > 0) {
      this.state = 'done'
      return
    }
    const first = at[0]!.value
    if (!first || first.lane || at.some((r) => r.value?.stmt !== first.stmt))
      throw new InternalError(`${this.#name}: threads of a block wait at different barriers`)
    if (first.stmt.kind === 'barrier' && first.stmt.cluster) this.state = 'cluster'
    else this.pass()
  }

  /** All threads are at one barrier, and go on. */
  pass(): void {
    this.state = 'running'
    this.#epoch++
    this.#threads.forEach((t, k) => {
      t.frame.who.epoch = this.#epoch
      this.#at[k] = t.run.next()
    })
  }
}

/** Polls threads at instructions again; returns true if there are any. */
function retryInstructions(threads: Threads, at: IteratorResult<Stop, void>[]): boolean {
  let any = false
  for (const [k, r] of at.entries()) {
    if (r.value?.stmt.kind !== 'instr') continue
    at[k] = threads[k]!.run.next()
    any = true
  }
  return any
}

/** Neighbours that have all arrived at one exchange make it and go on; whether there were any. */
function exchanges(threads: Threads, at: IteratorResult<Stop, void>[]): boolean {
  let any = false
  for (let k = 0; k < at.length; k++) {
    const stop = at[k]!.value
    if (!stop?.lane || k % stop.lane.among !== 0) continue
    const { xor, among } = stop.lane
    const group = at.slice(k, k + among)
    if (group.some((r) => r.value?.stmt !== stop.stmt || r.value.lane?.xor !== xor)) continue
    const mail = group.map((_, n) => [...threads[k + n]!.frame.mail])
    group.forEach((_, n) => {
      const other = mail[n ^ xor]
      if (!other) throw new InternalError(`thread ${k + n} exchanges with one that is not there`)
      threads[k + n]!.frame.mail.splice(0, Number.POSITIVE_INFINITY, ...other)
      if (stop.stmt.kind === 'barrier') threads[k + n]!.frame.who.phase++
      at[k + n] = threads[k + n]!.run.next()
    })
    any = true
  }
  return any
}
