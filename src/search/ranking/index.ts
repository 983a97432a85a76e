/** Costs of points, computed in this thread and, for many points, in others; each depends on its point alone. */
import { availableParallelism } from 'node:os'
import type { Coroutine } from '../../ast/work.ts'
import { type Thread, Threads, threadScript } from '../threads.ts'
import type { Point } from '../types.ts'
import type { RankingOrigin } from './origin.ts'
import type { RankingTask } from './ranking-worker.ts'
import { WorkSlots } from './work-slots.ts'

/** Minimum number of points for other threads: fewer are ranked before a thread has started. */
export const MIN_SHARED = 128
const ALONE = 8
const MAX_THREADS = 15
/** Minimum number of processors for other threads, because each thread loads the compiler anew. */
const MIN_PROCESSORS = 4

function defaultThreads(): number {
  const processors = availableParallelism()
  return processors < MIN_PROCESSORS ? 0 : Math.min(MAX_THREADS, processors - 1)
}

/** Milliseconds without progress after which threads count as lost. */
const PATIENCE_MS = 5000

interface RankingOptions {
  readonly cost: (point: Point) => number
  /** Evaluated on first use; `null`: rank in this thread alone. */
  readonly origin: () => RankingOrigin | null
  /** Number of additional threads; default: one per other processor if there are at least 4, at most 15. */
  readonly threads?: number | undefined
}

export class Ranking {
  readonly #cost: (point: Point) => number
  readonly #threads: number
  readonly #script: string | null
  #origin: RankingOrigin | null | undefined
  readonly #makeOrigin: () => RankingOrigin | null

  constructor({ cost, origin, threads = defaultThreads() }: RankingOptions) {
    this.#cost = cost
    this.#makeOrigin = origin
    this.#threads = threads
    this.#script = threads > 0 ? threadScript('ranking-worker') : null
  }

  /** Number of points that are ranked together: enough for all threads, few without other threads. */
  get together(): number {
    return this.#threads > 0 ? 2 * MIN_SHARED : ALONE
  }

  /** Starts the threads, which takes some tenths of a second. */
  begin(): void {
    this.#sendTo((script, origin) => send(script, this.#threads, origin, undefined))
    threads?.rest()
  }

  #sendTo<T>(work: (script: string, origin: RankingOrigin) => T): T | null {
    if (this.#script === null) return null
    if (this.#origin === undefined) this.#origin = this.#makeOrigin()
    return this.#origin && work(this.#script, this.#origin)
  }

  *costs(points: readonly Point[]): Coroutine<readonly number[]> {
    const shared =
      points.length < MIN_SHARED
        ? null
        : this.#sendTo((script, origin) => this.#shared(script, origin, points))
    if (shared) return yield* shared
    const out: number[] = []
    for (const p of points) {
      out.push(this.#cost(p))
      yield
    }
    return out
  }

  *#shared(script: string, origin: RankingOrigin, points: readonly Point[]): Coroutine<readonly number[]> {
    const order = groupingOrder(points)
    const inOrder = order.map((k) => points[k]!)
    const shares = WorkSlots.of(points.length, this.#threads + 1)
    send(script, this.#threads, origin, { points: inOrder, memory: shares.memory })
    try {
      for (let at = shares.take(); at >= 0; at = shares.take()) {
        shares.settle(at, this.#cost(inOrder[at]!))
        yield
      }
      for (let [before, since] = [-1, 0]; shares.done < shares.count; ) {
        const { done } = shares
        if (done !== before) [before, since] = [done, performance.now()]
        else if (performance.now() - since > PATIENCE_MS) break
        shares.wait(done, 5)
        yield
      }
    } finally {
      shares.end()
      threads?.rest()
    }
    const out = new Array<number>(points.length)
    for (const [at, k] of order.entries()) {
      const found = shares.value(at)
      out[k] = found ?? this.#cost(inOrder[at]!)
      if (found === null) yield
    }
    return out
  }
}

/** Orders points so that those with the same names (formats, schedules) are adjacent: one thread builds their common parts. */
function groupingOrder(points: readonly Point[]): readonly number[] {
  const keys = points.map((p) => {
    const values = Object.values(p)
    return [
      ...values.filter((v) => typeof v === 'string'),
      ...values.filter((v) => typeof v === 'number'),
    ].join('\n')
  })
  return points.map((_, k) => k).sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b))
}

// Thread pool for ranking, shared by all searches of the process; the caller computes unfinished slots.

const IDLE_MS = 20_000

let threads: Threads<RankingTask> | undefined
/** The origin last sent to each thread. */
const origins = new WeakMap<Thread<RankingTask>, RankingOrigin>()

/** Sends a task to `count` threads; without work, they only start. */
function send(script: string, count: number, origin: RankingOrigin, work: RankingTask['work']): void {
  threads ??= new Threads(script, IDLE_MS)
  for (const thread of threads.first(count)) {
    const isSent = origins.get(thread) === origin
    origins.set(thread, origin)
    thread.send({ origin: isSent ? undefined : origin, work })
  }
}
