/** Lowering and the reference in worker threads, so that this thread reacts to signals and work can be timed out. */

import { InternalError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { AbortSignalLike } from '../../ast/work.ts'
import type { Kernel3 } from '../../ir/statements/loops.ts'
import {
  type Answer,
  execute,
  type Task,
  type TaskInput,
  type TaskName,
  type TaskResult,
} from '../thread-tasks.ts'
import { type Thread, Threads, threadScript } from '../threads.ts'

export interface ThreadOptions {
  /** Milliseconds after which lowering one kernel is aborted; default 30,000. */
  readonly timeout?: number | undefined
}

interface Job {
  readonly description: string
  /** Timeout in milliseconds; absent for bounded work. */
  readonly timeout?: number
}

export type SearchThread = Thread<Task, Answer>

const IDLE_MS = 20_000

let threads: Threads<Task, Answer> | undefined

/** Threads of the process, shared by consecutive searches, because starting a thread loads the compiler; `null` without any. */
export function searchThreads(): Threads<Task, Answer> | null {
  const script = threads ? null : threadScript('thread-tasks')
  if (script !== null) threads = new Threads(script, IDLE_MS)
  return threads ?? null
}

/** Sends kernels and tensors to a thread as data, one after another, and receives its results. */
export class EvaluationThreads {
  readonly #timeout: number
  #thread: SearchThread | null = null
  /** The latest job; `null` if none is running. */
  #last: Promise<unknown> | null = null
  #isClosed = false

  constructor({ timeout = 30_000 }: ThreadOptions = {}) {
    this.#timeout = timeout
  }

  /** @throws SptError `search/timeout`, and as `lowerToMemory`; the abort reason of `signal`, after which the thread ends */
  plan(input: TaskInput<'lower'>, kernel: string, signal?: AbortSignalLike): Promise<Kernel3> {
    const job = { description: `lowering ${kernel}`, timeout: this.#timeout }
    return this.#submit({ name: 'lower', input }, job, signal)
  }

  /** @throws SptError as `expectedWithin`; the abort reason of `signal`, after which the thread ends */
  reference(input: TaskInput<'reference'>, signal?: AbortSignalLike): Promise<TaskResult<'reference'>> {
    const job = { description: `the reference of ${input.kernel.name}` }
    return this.#submit({ name: 'reference', input }, job, signal)
  }

  #submit<K extends TaskName>(
    task: Task<K>,
    job: Job,
    signal: AbortSignalLike | undefined,
  ): Promise<TaskResult<K>> {
    const run = (): Promise<TaskResult<K>> => this.#run(task as Task, job, signal) as Promise<TaskResult<K>>
    const result = this.#last ? this.#last.then(run) : run()
    const end = result
      .catch(() => undefined)
      .then(() => {
        if (this.#last === end) this.#last = null
      })
    this.#last = end
    return result
  }

  async #run(task: Task, job: Job, signal: AbortSignalLike | undefined): Promise<TaskResult<TaskName>> {
    signal?.throwIfAborted()
    if (this.#isClosed) throw new InternalError('closed')
    const pool = searchThreads()
    if (!pool) return execute(task)
    const thread = pool.free()
    this.#thread = thread
    const cancel = (): void => thread.end(signal!.reason as Error)
    signal?.addEventListener('abort', cancel, { once: true })
    try {
      const answer = await this.#request(thread, task, job, signal)
      if ('result' in answer) return answer.result
      throw new SptError(answer.diagnostics)
    } finally {
      signal?.removeEventListener('abort', cancel)
      this.#thread = null
      if (!pool.isBusy) pool.rest()
    }
  }

  #request(
    thread: SearchThread,
    task: Task,
    { description, timeout }: Job,
    signal: AbortSignalLike | undefined,
  ): Promise<Answer> {
    return thread
      .request(task, timeout, () => timeoutError(description, timeout))
      .catch(async (e: Error): Promise<Answer> => {
        signal?.throwIfAborted()
        // Data that cannot be cloned are processed in this thread.
        if (e.name === 'DataCloneError') return { result: await execute(task) }
        throw e instanceof SptError ? e : new InternalError(e.message, description)
      })
  }

  /** Rejects its jobs, and ends the thread that executes one; other threads stay in the pool. */
  close(): void {
    this.#isClosed = true
    this.#thread?.end(new Error('closed'))
  }
}

const timeoutError = (description: string, ms = Number.POSITIVE_INFINITY): SptError =>
  new SptError({
    code: 'search/timeout',
    message: `${description} has taken more than ${ms / 1000} s`,
    expected: 'a schedule that unrolls less',
    hint: 'give candidates more time (timeout)',
  })
