/** Costs of points, computed in this thread and, for many points, in others; each depends on its point alone. */
import { availableParallelism } from 'node:os'
import type { Coroutine } from '../../ast/work.ts'
import { type SearchThread, searchThreads } from '../evaluate/evaluation-threads.ts'
import type { Point } from '../types.ts'
import type { RankingOrigin } from './origin.ts'

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

/** Milliseconds after which a thread that does not answer counts as lost. */
const PATIENCE_MS = 60_000

interface RankingOptions {
  readonly cost: (point: Point) => number
  /** Evaluated on first use; `null`: rank in this thread alone. */
  readonly origin: () => RankingOrigin | null
  /** Number of additional threads; default: one per other processor if there are at least 4, at most 15. */
  readonly threads?: number | undefined
}

/** The origin last sent to each thread. */
const origins = new WeakMap<SearchThread, RankingOrigin>()

/** Costs of points in a thread; `null` if it cannot compute them. */
async function costsIn(
  thread: SearchThread,
  origin: RankingOrigin,
  points: readonly Point[],
): Promise<readonly (number | null)[] | null> {
  const sent = origins.get(thread) === origin ? undefined : origin
  origins.set(thread, origin)
  const answer = await thread
    .request({ name: 'rank', input: { origin: sent, points } }, PATIENCE_MS, () => new Error('no answer'))
    .catch(() => null)
  return answer && 'result' in answer ? (answer.result as readonly (number | null)[] | null) : null
}

export class Ranking {
  readonly #cost: (point: Point) => number
  readonly #threads: number
  #origin: RankingOrigin | null | undefined
  readonly #makeOrigin: () => RankingOrigin | null

  constructor({ cost, origin, threads = defaultThreads() }: RankingOptions) {
    this.#cost = cost
    this.#makeOrigin = origin
    this.#threads = searchThreads() ? threads : 0
  }

  /** Number of points that are ranked together: enough for all threads, few without other threads. */
  get together(): number {
    return this.#threads > 0 ? 2 * MIN_SHARED : ALONE
  }

  /** Starts the threads, which takes some tenths of a second. */
  begin(): void {
    void this.#inOthers((thread, origin) => costsIn(thread, origin, []))
  }

  /** Works in each of the other threads. */
  async #inOthers(work: (thread: SearchThread, origin: RankingOrigin) => Promise<unknown>): Promise<void> {
    if (this.#threads === 0) return
    if (this.#origin === undefined) this.#origin = this.#makeOrigin()
    const [pool, origin] = [searchThreads()!, this.#origin]
    if (!origin) return
    await Promise.all(pool.first(this.#threads).map((thread) => work(thread, origin)))
    if (!pool.isBusy) pool.rest()
  }

  *costs(points: readonly Point[]): Coroutine<readonly number[]> {
    const isShared = points.length >= MIN_SHARED && this.#threads > 0
    const chunks = chunksOf(groupingOrder(points), isShared ? this.#threads + 1 : 1)
    const out = new Array<number | null>(points.length).fill(null)
    const rankIn = async (thread: SearchThread, origin: RankingOrigin): Promise<void> => {
      for (let chunk = chunks.next().value; chunk; chunk = chunks.next().value) {
        const costs = await costsIn(
          thread,
          origin,
          chunk.map((k) => points[k]!),
        )
        if (!costs) return
        for (const [n, k] of chunk.entries()) out[k] = costs[n]!
      }
    }
    const others = isShared ? this.#inOthers(rankIn) : undefined
    // After an abort, which leaves the loop, the others begin no further chunk.
    for (const chunk of chunks)
      for (const k of chunk) {
        out[k] = this.#cost(points[k]!)
        yield
      }
    if (others) yield others
    return out.map((cost, k) => cost ?? this.#cost(points[k]!))
  }
}

/** Chunks of neighbours that shrink towards the end (guided self-scheduling, Polychronopoulos and Kuck, 1987). */
export function* chunksOf<T>(list: readonly T[], threads: number): Generator<readonly T[], undefined> {
  for (let start = 0; start < list.length; ) {
    const end = start + Math.ceil((list.length - start) / (2 * threads))
    yield list.slice(start, end)
    start = end
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
