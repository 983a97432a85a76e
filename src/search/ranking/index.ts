/**
 * Costs of points, computed in this thread and, for many points, in others. A cost depends on its point alone, so it is the
 * same in every thread.
 */
import { availableParallelism } from 'node:os'
import type { Stepwise } from '../stepwise.ts'
import { threadScript } from '../thread-scripts.ts'
import type { Point } from '../types.ts'
import type { RankingOrigin } from './origin.ts'
import { pool } from './pool.ts'
import { MOST_PLACES, Shares } from './work-stealing.ts'

/** Fewer points are done before a thread has begun. */
export const LEAST = 128
const ALONE = 8
const MOST_THREADS = 15
/** Each thread compiles the compiler anew for itself: of fewer processors that takes more than it gives. */
const FEW_PROCESSORS = 4

function usualThreads(): number {
  const processors = availableParallelism()
  return processors < FEW_PROCESSORS ? 0 : Math.min(MOST_THREADS, processors - 1)
}

/** Milliseconds without anything done after which threads count as lost. */
const PATIENCE = 5000

export interface RankingOptions {
  readonly cost: (point: Point) => number
  /** Asked for once it is needed; `null`: this thread alone. */
  readonly origin: () => RankingOrigin | null
  /** Besides this one; default: a thread for each other processor where there are 4 and more, 15 at most. */
  readonly threads?: number | undefined
}

export class Ranking {
  readonly #cost: (point: Point) => number
  readonly #threads: number
  readonly #script: string | null
  #origin: RankingOrigin | null | undefined
  readonly #ask: () => RankingOrigin | null

  constructor({ cost, origin, threads = usualThreads() }: RankingOptions) {
    this.#cost = cost
    this.#ask = origin
    this.#threads = threads
    this.#script = threads > 0 ? threadScript('ranking/ranking-worker.js') : null
  }

  /** Points that are ranked at once: enough for all threads, few where there is none. */
  get together(): number {
    return this.#threads > 0 ? 2 * LEAST : ALONE
  }

  /** Has threads begin, which takes them some tenths of a second. */
  begin(): void {
    this.#sendTo((script, origin) => pool.send(script, this.#threads, origin, null))
    pool.rest()
  }

  #sendTo<T>(work: (script: string, origin: RankingOrigin) => T): T | null {
    if (this.#script === null) return null
    if (this.#origin === undefined) this.#origin = this.#ask()
    return this.#origin && work(this.#script, this.#origin)
  }

  /** In the order of the points. */
  *costs(points: readonly Point[]): Stepwise<readonly number[]> {
    const out: number[] = []
    for (let from = 0; from < points.length; from += MOST_PLACES)
      out.push(...(yield* this.#some(points.slice(from, from + MOST_PLACES))))
    return out
  }

  *#some(points: readonly Point[]): Stepwise<readonly number[]> {
    const shared =
      points.length < LEAST ? null : this.#sendTo((script, origin) => this.#shared(script, origin, points))
    if (shared) return yield* shared
    const out: number[] = []
    for (const p of points) {
      out.push(this.#cost(p))
      yield
    }
    return out
  }

  *#shared(script: string, origin: RankingOrigin, points: readonly Point[]): Stepwise<readonly number[]> {
    const order = alikeTogether(points)
    const inOrder = order.map((k) => points[k]!)
    const shares = Shares.of(points.length, this.#threads + 1)
    pool.send(script, this.#threads, origin, { points: inOrder, memory: shares.memory })
    try {
      for (let at = shares.take(0); at >= 0; at = shares.take(0)) {
        shares.settle(at, this.#cost(inOrder[at]!))
        yield
      }
      for (let [before, since] = [-1, 0]; shares.done < shares.count; ) {
        const { done } = shares
        if (done !== before) [before, since] = [done, performance.now()]
        else if (performance.now() - since > PATIENCE) break
        shares.wait(done, 5)
        yield
      }
    } finally {
      shares.end()
      pool.rest()
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
function alikeTogether(points: readonly Point[]): readonly number[] {
  const keys = points.map((p) => {
    const values = Object.values(p)
    return [
      ...values.filter((v) => typeof v === 'string'),
      ...values.filter((v) => typeof v === 'number'),
    ].join('\n')
  })
  return points.map((_, k) => k).sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b))
}
