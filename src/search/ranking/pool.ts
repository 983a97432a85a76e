/** Thread pool for ranking, shared by all searches of the process. The caller computes unfinished slots itself. */
import { type Thread, Threads } from '../threads.ts'
import type { RankingOrigin } from './origin.ts'
import type { RankingTask, Share } from './ranking-worker.ts'

/** Milliseconds after which idle threads end. */
const IDLE_MS = 20_000

class Pool {
  #threads: Threads<RankingTask> | undefined
  /** The origin last sent to each thread. */
  readonly #origins = new WeakMap<Thread<RankingTask>, RankingOrigin>()

  /** Sends a task to `count` threads, numbered from 1; `null`: the threads only start. */
  send(
    script: string,
    count: number,
    origin: RankingOrigin,
    task: Pick<Share, 'points' | 'memory'> | null,
  ): void {
    this.#threads ??= new Threads(script, IDLE_MS)
    for (const [k, thread] of this.#threads.first(count).entries()) {
      const isSent = this.#origins.get(thread) === origin
      this.#origins.set(thread, origin)
      thread.tell({ ...(isSent ? {} : { origin }), ...(task && { share: { ...task, thread: k + 1 } }) })
    }
  }

  /** Marks the threads as idle. */
  rest(): void {
    this.#threads?.rest()
  }
}

export const pool = new Pool()
