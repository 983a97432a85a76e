/** Lowering in threads beside this one, which may take as long as they are given. */
import { InternalError, SptError } from '../../ast/diagnostic.ts'
import type { Kernel2, Plan } from '../../ir/loops.ts'
import { type LowerOptions, lowerToMemory } from '../../lower/pipeline.ts'
import { threadScript } from '../thread-scripts.ts'
import { type Thread, Threads } from '../threads.ts'
import type { LoweringAnswer, LoweringTask } from './lowering-worker.ts'

export interface LoweringOptions {
  /** 1. */
  readonly threads?: number | undefined
  /** Milliseconds that one kernel may take; 30,000. */
  readonly timeout?: number | undefined
}

interface Job {
  readonly task: LoweringTask
  readonly what: string
  resolve(plan: Plan): void
  reject(why: Error): void
  /** Ends the thread that is at it. */
  stop?: (why: Error) => void
}

type LoweringThread = Thread<LoweringTask, LoweringAnswer>

/** Kernels are data: a thread gets loops, and gives the plan. */
export class Lowering {
  readonly #timeout: number
  readonly #most: number
  readonly #threads: Threads<LoweringTask, LoweringAnswer> | null
  readonly #waiting: Job[] = []
  readonly #busy = new Set<LoweringThread>()

  constructor({ threads = 1, timeout = 30_000 }: LoweringOptions = {}) {
    this.#most = threads
    this.#timeout = timeout
    const script = threadScript('evaluate/lowering-worker.js')
    this.#threads = script === null ? null : new Threads(script, IDLE)
  }

  /**
   * @param what for errors: the kernel's name
   * @throws SptError `search/timeout`, and as `lowerToMemory`; what `signal` aborts with, and the thread ends
   */
  plan(loops: Kernel2, options: LowerOptions, what: string, signal?: AbortSignal): Promise<Plan> {
    const task = { loops, options }
    if (this.#threads === null) return Promise.resolve().then(() => lowered(task))
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        const at = this.#waiting.indexOf(job)
        if (at >= 0) this.#waiting.splice(at, 1)
        job.reject(signal!.reason as Error)
        job.stop?.(signal!.reason as Error)
      }
      const ended =
        <T>(settle: (x: T) => void) =>
        (x: T): void => {
          signal?.removeEventListener('abort', stop)
          settle(x)
        }
      const job: Job = { task, what, resolve: ended(resolve), reject: ended(reject) }
      signal?.addEventListener('abort', stop, { once: true })
      this.#waiting.push(job)
      this.#begin()
    })
  }

  #begin(): void {
    while (this.#waiting.length > 0 && this.#busy.size < this.#most) {
      const thread = this.#threads!.first(this.#busy.size + 1).find((t) => !this.#busy.has(t))!
      void this.#run(thread, this.#waiting.shift()!)
    }
    if (this.#busy.size === 0) this.#threads!.rest()
  }

  async #run(thread: LoweringThread, job: Job): Promise<void> {
    this.#busy.add(thread)
    job.stop = (why) => thread.end(why)
    await this.#planned(thread, job).then(job.resolve, job.reject)
    this.#busy.delete(thread)
    this.#begin()
  }

  async #planned(thread: LoweringThread, { task, what }: Job): Promise<Plan> {
    const answer = await thread
      .ask(task, this.#timeout, () => timedOut(what, this.#timeout))
      .catch((e: Error): LoweringAnswer => {
        // What is no data is lowered here.
        if (e.name === 'DataCloneError') return { plan: lowered(task) }
        throw e instanceof SptError ? e : new InternalError(e.message, `lowering ${what}`)
      })
    if ('plan' in answer) return answer.plan
    throw new SptError(answer.refused)
  }

  /** Ends its threads; what they were at is rejected. */
  close(): void {
    for (const job of this.#waiting.splice(0)) job.reject(new InternalError('closed'))
    this.#threads?.end()
  }
}

/** Milliseconds that threads wait for more. */
const IDLE = 20_000

const lowered = ({ loops, options }: LoweringTask): Plan => lowerToMemory(loops, undefined, options)

const timedOut = (what: string, ms: number): SptError =>
  new SptError({
    code: 'search/timeout',
    message: `lowering ${what} has taken more than ${ms / 1000} s`,
    expected: 'a schedule that unrolls less',
    hint: 'give candidates more time (timeout)',
  })
