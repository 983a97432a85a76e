/** Thread pool for ranking, shared by all searches of the process. The caller computes unfinished slots itself. */
import { type Thread, Threads } from '../threads.ts'
import type { RankingOrigin } from './origin.ts'
import type { RankingTask, Share } from './ranking-worker.ts'

/** Milliseconds that threads wait for more. */
const IDLE = 20_000

class Pool {
  #threads: Threads<RankingTask> | undefined
  /** The origin last sent to each thread. */
  readonly #origins = new WeakMap<Thread<RankingTask>, RankingOrigin>()

  /** Hands a task to as many threads, which are numbered from 1; `null`: they are to be ready for one. */
  send(
    script: string,
    count: number,
    origin: RankingOrigin,
    task: Pick<Share, 'points' | 'memory'> | null,
  ): void {
    this.#threads ??= new Threads(script, IDLE)
    for (const [k, thread] of this.#threads.first(count).entries()) {
      const isSent = this.#origins.get(thread) === origin
      this.#origins.set(thread, origin)
      thread.tell({ ...(isSent ? {} : { origin }), ...(task && { share: { ...task, thread: k + 1 } }) })
    }
  }

  /** Nobody waits for them any more. */
  rest(): void {
    this.#threads?.rest()
  }
}

export const pool = new Pool()
