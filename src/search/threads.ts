/** Pool of threads that run a script: started on demand, ended when idle. */

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { packageFolder } from '../io/package/package.ts'

interface PendingRequest<Answer> {
  readonly timer: NodeJS.Timeout | undefined
  resolve(answer: Answer): void
  reject(why: Error): void
}

/** A thread that answers requests in their order. */
export class Thread<Task, Answer> {
  readonly #worker: Worker
  readonly #gone: () => void
  readonly #pending: PendingRequest<Answer>[] = []

  constructor(script: string, gone: (thread: Thread<Task, Answer>) => void) {
    this.#gone = () => gone(this)
    this.#worker = new Worker(script)
    let failure: Error | undefined
    this.#worker
      .on('message', (answer: Answer) => this.#settled()?.resolve(answer))
      // An error may arrive before answers that the thread sent earlier; its exit arrives after all of them.
      .on('error', (e) => {
        failure = e
      })
      .on('exit', (code) => this.end(failure ?? new Error(`the thread ended with ${code}`)))
      // A thread without a request in flight does not keep the process alive.
      .unref()
  }

  get isBusy(): boolean {
    return this.#pending.length > 0
  }

  /**
   * Sends a request. Rejects if the thread ends, after `patience` milliseconds with `late`, and with a DataCloneError for
   * values that cannot be cloned.
   */
  request(task: Task, patience: number | undefined, late: () => Error): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const timer = patience === undefined ? undefined : setTimeout(() => this.end(late()), patience)
      try {
        this.#worker.postMessage(task)
        this.#pending.push({ timer, resolve, reject })
        this.#worker.ref()
      } catch (e) {
        clearTimeout(timer)
        reject(e as Error)
      }
    })
  }

  #settled(): PendingRequest<Answer> | undefined {
    const pending = this.#pending.shift()
    clearTimeout(pending?.timer)
    if (!this.isBusy) this.#worker.unref()
    return pending
  }

  /** @param why rejects the requests in flight */
  end(why: Error): void {
    this.#gone()
    while (this.isBusy) this.#settled()!.reject(why)
    void this.#worker.terminate()
  }
}

export class Threads<Task, Answer> {
  readonly #threads: Thread<Task, Answer>[] = []
  #ends: NodeJS.Timeout | undefined

  /** @param idle milliseconds that they wait for more once they rest */
  constructor(
    private readonly script: string,
    private readonly idle: number,
  ) {}

  /** The first `count` threads, the same ones as long as they run. */
  first(count: number): readonly Thread<Task, Answer>[] {
    clearTimeout(this.#ends)
    while (this.#threads.length < count)
      this.#threads.push(
        new Thread(this.script, (thread) => {
          const at = this.#threads.indexOf(thread)
          if (at >= 0) this.#threads.splice(at, 1)
        }),
      )
    return this.#threads.slice(0, count)
  }

  /** A thread without a request in flight. */
  free(): Thread<Task, Answer> {
    clearTimeout(this.#ends)
    return this.#threads.find((t) => !t.isBusy) ?? this.first(this.#threads.length + 1).at(-1)!
  }

  get isBusy(): boolean {
    return this.#threads.some((t) => t.isBusy)
  }

  /** Ends the threads after `idle` milliseconds without a request. */
  rest(): void {
    clearTimeout(this.#ends)
    this.#ends = setTimeout(() => this.end(), this.idle).unref()
  }

  end(): void {
    clearTimeout(this.#ends)
    for (const thread of [...this.#threads]) thread.end(new Error('closed'))
  }
}

// Scripts that run in threads of their own.

/** Path of a script next to this file, or in `dist/lib`; `null` if sources run untranspiled. */
export function threadScript(name: string): string | null {
  if (import.meta.url.endsWith('.ts')) return null
  const folder = packageFolder()
  const places = [import.meta.url, ...(folder ? [new URL('dist/lib/', folder)] : [])]
  return places.map((p) => fileURLToPath(new URL(`${name}.js`, p))).find((p) => existsSync(p)) ?? null
}
