/**
 * Runs lowering and the reference in worker threads, so that this thread stays responsive to signals and work can be
 * timed out.
 */
import { InternalError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Plan } from '../../ir/statements/loops.ts'
import { type Thread, Threads, threadScript } from '../threads.ts'
import {
  type Answer,
  execute,
  type Task,
  type TaskInput,
  type TaskResult,
  type WorkName,
} from './evaluation-worker.ts'

export interface ThreadOptions {
  /** Number of threads; default 1. */
  readonly threads?: number | undefined
  /** Milliseconds after which lowering one kernel is aborted; default 30,000. */
  readonly timeout?: number | undefined
}

interface Job {
  readonly task: Task
  /** Description for error messages. */
  readonly description: string
  /** Timeout in milliseconds; absent for bounded work. */
  readonly timeout?: number | undefined
  resolve(result: TaskResult<WorkName>): void
  reject(reason: Error): void
  /** Ends the thread that executes the job. */
  cancel?: (reason: Error) => void
}

type EvaluationThread = Thread<Task, Answer>

/** Milliseconds after which idle threads end. */
const IDLE_MS = 20_000

/** Threads of the process, shared by consecutive searches, because starting a thread loads the compiler. */
class Pool {
  readonly #busy = new Set<EvaluationThread>()
  #threads: Threads<Task, Answer> | undefined

  acquire(script: string): EvaluationThread {
    this.#threads ??= new Threads(script, IDLE_MS)
    const thread = this.#threads.first(this.#busy.size + 1).find((t) => !this.#busy.has(t))!
    this.#busy.add(thread)
    return thread
  }

  /** Returns a thread, even if it has ended. */
  release(thread: EvaluationThread): void {
    this.#busy.delete(thread)
    if (this.#busy.size === 0) this.#threads!.rest()
  }
}

const pool = new Pool()

/** Sends kernels and tensors to a thread as data, and receives its results. */
export class EvaluationThreads {
  readonly #timeout: number
  readonly #maxThreads: number
  readonly #script: string | null
  readonly #waiting: Job[] = []
  readonly #busy = new Set<EvaluationThread>()

  constructor({ threads = 1, timeout = 30_000 }: ThreadOptions = {}) {
    this.#maxThreads = threads
    this.#timeout = timeout
    this.#script = threadScript('evaluation-worker')
  }

  /** @throws SptError `search/timeout`, and as `lowerToMemory`; the abort reason of `signal`, after which the thread ends */
  plan(input: TaskInput<'lower'>, kernel: string, signal?: AbortSignal): Promise<Plan> {
    const options = { description: `lowering ${kernel}`, timeout: this.#timeout }
    return this.#submit({ name: 'lower', input }, options, signal)
  }

  /** @throws SptError as `expectedWithin`; the abort reason of `signal`, after which the thread ends */
  reference(input: TaskInput<'reference'>, signal?: AbortSignal): Promise<TaskResult<'reference'>> {
    return this.#submit(
      { name: 'reference', input },
      { description: `the reference of ${input.kernel.name}` },
      signal,
    )
  }

  #submit<K extends WorkName>(
    task: Task<K>,
    options: Pick<Job, 'description' | 'timeout'>,
    signal: AbortSignal | undefined,
  ): Promise<TaskResult<K>> {
    const script = this.#script
    if (script === null) return Promise.resolve().then(() => execute(task))
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise<TaskResult<WorkName>>((resolve, reject) => {
      const onAbort = (): void => {
        const index = this.#waiting.indexOf(job)
        if (index >= 0) this.#waiting.splice(index, 1)
        job.reject(signal!.reason as Error)
        job.cancel?.(signal!.reason as Error)
      }
      const detached =
        <T>(settle: (x: T) => void) =>
        (x: T): void => {
          signal?.removeEventListener('abort', onAbort)
          settle(x)
        }
      const job: Job = {
        task: task as Task,
        ...options,
        resolve: detached(resolve),
        reject: detached(reject),
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(job)
      this.#begin(script)
    }) as Promise<TaskResult<K>>
  }

  #begin(script: string): void {
    while (this.#waiting.length > 0 && this.#busy.size < this.#maxThreads)
      void this.#run(script, this.#waiting.shift()!)
  }

  async #run(script: string, job: Job): Promise<void> {
    const thread = pool.acquire(script)
    this.#busy.add(thread)
    job.cancel = (reason) => thread.end(reason)
    await this.#execute(thread, job).then(job.resolve, job.reject)
    this.#busy.delete(thread)
    pool.release(thread)
    this.#begin(script)
  }

  async #execute(
    thread: EvaluationThread,
    { task, description, timeout }: Job,
  ): Promise<TaskResult<WorkName>> {
    const answer = await thread
      .ask(task, timeout, () => timeoutError(description, timeout))
      .catch((e: Error): Answer => {
        // Data that cannot be cloned are processed in this thread.
        if (e.name === 'DataCloneError') return { result: execute(task) }
        throw e instanceof SptError ? e : new InternalError(e.message, description)
      })
    if ('result' in answer) return answer.result
    throw new SptError(answer.diagnostics)
  }

  /** Ends the threads that execute its jobs, which are rejected; other threads stay in the pool. */
  close(): void {
    for (const job of this.#waiting.splice(0)) job.reject(new InternalError('closed'))
    for (const thread of [...this.#busy]) thread.end(new Error('closed'))
  }
}

const timeoutError = (description: string, ms = Number.POSITIVE_INFINITY): SptError =>
  new SptError({
    code: 'search/timeout',
    message: `${description} has taken more than ${ms / 1000} s`,
    expected: 'a schedule that unrolls less',
    hint: 'give candidates more time (timeout)',
  })
