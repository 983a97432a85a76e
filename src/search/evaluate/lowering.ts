/** Lowering in threads beside this one, which may take as long as they are given. */
import { Worker } from 'node:worker_threads'
import { InternalError, SptError } from '../../ast/diagnostic.ts'
import type { Kernel2, Plan } from '../../ir/loops.ts'
import { type LowerOptions, lowerToMemory } from '../../lower/pipeline.ts'
import { threadScript } from '../thread-scripts.ts'
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
  stop?: () => void
}

/** Kernels are data: a thread gets loops, and gives the plan. */
export class Lowering {
  readonly #timeout: number
  readonly #most: number
  readonly #script = threadScript('evaluate/lowering-worker.js')
  readonly #idle: Worker[] = []
  readonly #waiting: Job[] = []
  readonly #busy = new Set<Worker>()
  #next = 0

  constructor({ threads = 1, timeout = 30_000 }: LoweringOptions = {}) {
    this.#most = threads
    this.#timeout = timeout
  }

  /**
   * @param what for errors: the kernel's name
   * @throws SptError `search/timeout`, and as `lowerToMemory`; what `signal` aborts with, and the thread ends
   */
  plan(loops: Kernel2, options: LowerOptions, what: string, signal?: AbortSignal): Promise<Plan> {
    if (this.#script === null) return Promise.resolve().then(() => lowerToMemory(loops, undefined, options))
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const task = { id: this.#next++, loops, options }
      const stop = (): void => {
        const at = this.#waiting.indexOf(job)
        if (at >= 0) this.#waiting.splice(at, 1)
        job.stop?.()
        job.reject(signal!.reason as Error)
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
    while (this.#waiting.length > 0) {
      if (this.#idle.length === 0 && this.#busy.size < this.#most) this.#idle.push(this.#open())
      const worker = this.#idle.pop()
      if (!worker) return
      this.#run(worker, this.#waiting.shift()!)
    }
  }

  #open(): Worker {
    const worker = new Worker(this.#script!)
    // A process that ends waits for nothing.
    worker.unref()
    return worker
  }

  #run(worker: Worker, job: Job): void {
    this.#busy.add(worker)
    const done = (again: boolean): void => {
      clearTimeout(timer)
      // One by one: those that Node has itself stay.
      worker.off('error', failed).off('exit', ended).off('message', answered)
      this.#busy.delete(worker)
      if (again) this.#idle.push(worker)
      else void worker.terminate()
      this.#begin()
    }
    const broken = (message: string): void => {
      done(false)
      job.reject(new InternalError(message, `lowering ${job.what}`))
    }
    const failed = (e: Error): void => broken(e.message)
    const ended = (code: number): void => broken(`the thread ended with ${code}`)
    const answered = (answer: LoweringAnswer): void => {
      if ('broken' in answer) {
        broken(answer.broken)
        return
      }
      done(true)
      if ('plan' in answer) job.resolve(answer.plan)
      else job.reject(new SptError(answer.refused))
    }
    job.stop = () => done(false)
    const timer = setTimeout(() => {
      done(false)
      job.reject(timedOut(job.what, this.#timeout))
    }, this.#timeout)
    worker.on('error', failed).on('exit', ended).on('message', answered)
    try {
      worker.postMessage(job.task)
    } catch {
      // What is no data is lowered here.
      done(true)
      try {
        job.resolve(lowerToMemory(job.task.loops, undefined, job.task.options))
      } catch (e) {
        job.reject(e as Error)
      }
    }
  }

  /** Ends its threads; what they were at is rejected. */
  close(): void {
    for (const job of this.#waiting.splice(0)) job.reject(new InternalError('closed'))
    for (const worker of [...this.#idle.splice(0), ...this.#busy]) void worker.terminate()
  }
}

const timedOut = (what: string, ms: number): SptError =>
  new SptError({
    code: 'search/timeout',
    message: `lowering ${what} has taken more than ${ms / 1000} s`,
    expected: 'a schedule that unrolls less',
    hint: 'give candidates more time (timeout)',
  })
