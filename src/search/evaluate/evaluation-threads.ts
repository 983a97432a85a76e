/** Lowering and reference in threads beside this one, which stays responsive to signals and ends work that takes too long. */
import { InternalError, SptError } from '../../ast/diagnostic.ts'
import type { Plan } from '../../ir/loops.ts'
import { threadScript } from '../thread-scripts.ts'
import { type Thread, Threads } from '../threads.ts'
import { type Answer, done, type Given, type Made, type Task, type WorkName } from './evaluation-worker.ts'

export interface ThreadOptions {
  /** 1. */
  readonly threads?: number | undefined
  /** Milliseconds that lowering one kernel may take; 30,000. */
  readonly timeout?: number | undefined
}

interface Job {
  readonly task: Task
  /** For errors. */
  readonly what: string
  /** Timeout in milliseconds; absent for bounded work. */
  readonly timeout?: number | undefined
  resolve(made: Made<WorkName>): void
  reject(why: Error): void
  /** Ends the thread that is at it. */
  stop?: (why: Error) => void
}

type EvaluationThread = Thread<Task, Answer>

/** Milliseconds that threads wait for more. */
const IDLE = 20_000

/** For all searches of the process, one after the other: a thread reads the compiler before it is of use. */
class Pool {
  readonly #busy = new Set<EvaluationThread>()
  #threads: Threads<Task, Answer> | undefined

  take(script: string): EvaluationThread {
    this.#threads ??= new Threads(script, IDLE)
    const thread = this.#threads.first(this.#busy.size + 1).find((t) => !this.#busy.has(t))!
    this.#busy.add(thread)
    return thread
  }

  /** One that has ended is none of them any more. */
  giveBack(thread: EvaluationThread): void {
    this.#busy.delete(thread)
    if (this.#busy.size === 0) this.#threads!.rest()
  }
}

const pool = new Pool()

/** Sends kernels and tensors to a thread as data, and receives its results. */
export class EvaluationThreads {
  readonly #timeout: number
  readonly #most: number
  readonly #script: string | null
  readonly #waiting: Job[] = []
  readonly #busy = new Set<EvaluationThread>()

  constructor({ threads = 1, timeout = 30_000 }: ThreadOptions = {}) {
    this.#most = threads
    this.#timeout = timeout
    this.#script = threadScript('evaluate/evaluation-worker.js')
  }

  /** @throws SptError `search/timeout`, and as `lowerToMemory`; the abort reason of `signal`, after which the thread ends */
  plan(given: Given<'lower'>, kernel: string, signal?: AbortSignal): Promise<Plan> {
    const how = { what: `lowering ${kernel}`, timeout: this.#timeout }
    return this.#done({ name: 'lower', given }, how, signal)
  }

  /** @throws SptError as `expectedWithin`; the abort reason of `signal`, after which the thread ends */
  reference(given: Given<'reference'>, signal?: AbortSignal): Promise<Made<'reference'>> {
    return this.#done({ name: 'reference', given }, { what: `the reference of ${given.kernel.name}` }, signal)
  }

  #done<K extends WorkName>(
    task: Task<K>,
    how: Pick<Job, 'what' | 'timeout'>,
    signal: AbortSignal | undefined,
  ): Promise<Made<K>> {
    const script = this.#script
    if (script === null) return Promise.resolve().then(() => done(task))
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise<Made<WorkName>>((resolve, reject) => {
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
      const job: Job = { task: task as Task, ...how, resolve: ended(resolve), reject: ended(reject) }
      signal?.addEventListener('abort', stop, { once: true })
      this.#waiting.push(job)
      this.#begin(script)
    }) as Promise<Made<K>>
  }

  #begin(script: string): void {
    while (this.#waiting.length > 0 && this.#busy.size < this.#most)
      void this.#run(script, this.#waiting.shift()!)
  }

  async #run(script: string, job: Job): Promise<void> {
    const thread = pool.take(script)
    this.#busy.add(thread)
    job.stop = (why) => thread.end(why)
    await this.#made(thread, job).then(job.resolve, job.reject)
    this.#busy.delete(thread)
    pool.giveBack(thread)
    this.#begin(script)
  }

  async #made(thread: EvaluationThread, { task, what, timeout }: Job): Promise<Made<WorkName>> {
    const answer = await thread
      .ask(task, timeout, () => timedOut(what, timeout))
      .catch((e: Error): Answer => {
        // What is no data is done here.
        if (e.name === 'DataCloneError') return { made: done(task) }
        throw e instanceof SptError ? e : new InternalError(e.message, what)
      })
    if ('made' in answer) return answer.made
    throw new SptError(answer.refused)
  }

  /** Ends the threads that are at something of it, which is rejected; others may be of use to the next. */
  close(): void {
    for (const job of this.#waiting.splice(0)) job.reject(new InternalError('closed'))
    for (const thread of [...this.#busy]) thread.end(new Error('closed'))
  }
}

const timedOut = (what: string, ms = Number.POSITIVE_INFINITY): SptError =>
  new SptError({
    code: 'search/timeout',
    message: `${what} has taken more than ${ms / 1000} s`,
    expected: 'a schedule that unrolls less',
    hint: 'give candidates more time (timeout)',
  })
