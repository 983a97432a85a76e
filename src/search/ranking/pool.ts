/** Threads that rank, for all searches of the process; those that have nothing to do for a while end. */
import { Worker } from 'node:worker_threads'
import type { RankingOrigin } from './origin.ts'
import type { RankingTask, Share } from './ranking-worker.ts'

/** Milliseconds that threads wait for more. */
const IDLE = 20_000

interface Thread {
  readonly worker: Worker
  /** What it was sent last. */
  origin: RankingOrigin | null
}

class Pool {
  readonly #threads: Thread[] = []
  #ends: NodeJS.Timeout | undefined

  /** Hands a task to as many threads, which are numbered from 1; `null`: they are to be ready for one. */
  send(
    script: string,
    count: number,
    origin: RankingOrigin,
    task: Pick<Share, 'points' | 'memory'> | null,
  ): void {
    clearTimeout(this.#ends)
    while (this.#threads.length < count) this.#open(script)
    for (const [k, t] of this.#threads.slice(0, count).entries()) {
      const own: RankingTask = {
        ...(t.origin === origin ? {} : { origin }),
        ...(task && { share: { ...task, thread: k + 1 } }),
      }
      t.origin = origin
      t.worker.postMessage(own)
    }
  }

  #open(script: string): void {
    const worker = new Worker(script)
    const thread: Thread = { worker, origin: null }
    const gone = (): void => {
      const at = this.#threads.indexOf(thread)
      if (at >= 0) this.#threads.splice(at, 1)
    }
    // What it leaves undone is done by whoever asked. A process that ends waits for nothing.
    worker.on('error', gone).on('exit', gone).unref()
    this.#threads.push(thread)
  }

  /** Nobody waits for them any more. */
  rest(): void {
    clearTimeout(this.#ends)
    this.#ends = setTimeout(() => {
      for (const { worker } of this.#threads.splice(0)) void worker.terminate()
    }, IDLE).unref()
  }
}

export const pool = new Pool()
