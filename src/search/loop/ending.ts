/** When a search is to end: its caller's signal, and the clock. */

import type { AbortSignalLike } from '../../ast/work.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import type { SearchOptions } from './search-options.ts'

export type Limits = Pick<SearchOptions, 'signal' | 'seconds' | 'graceSeconds'>

const GRACE_SECONDS = 30
/** The longest that timers of JavaScript can be set to. */
const LONGEST_TIMER = 2 ** 31 - 1

/** The signal of evaluations: the caller's, and the clock's. */
export class Ending {
  readonly #stop = new AbortController()
  readonly #late = new AbortController()
  readonly #timers: ReturnType<typeof setTimeout>[] = []
  readonly signal = this.#stop.signal
  /** Aborts when the grace period after `signal` is over. */
  readonly late = this.#late.signal
  readonly #graceEnd = new Promise<undefined>((resolve) => {
    this.late.addEventListener('abort', () => resolve(undefined))
  })

  constructor(private readonly limits: Limits) {
    const { signal, seconds, graceSeconds = GRACE_SECONDS } = limits
    this.signal.addEventListener('abort', () =>
      this.#abortAfter(graceSeconds, this.#late, this.signal.reason),
    )
    signal?.addEventListener('abort', this.#abort)
    if (signal?.aborted) this.#abort()
    if (seconds !== undefined)
      this.#abortAfter(seconds, this.#stop, new Error('the time of the search is over'))
  }

  readonly #abort = (): void => this.#stop.abort(this.limits.signal?.reason)

  #abortAfter(seconds: number, controller: AbortController, reason: unknown): void {
    if (!Number.isFinite(seconds)) return
    const abort = (): void => controller.abort(reason)
    this.#timers.push(setTimeout(abort, Math.min(seconds * 1000, LONGEST_TIMER)))
  }

  /** Undefined if the work rejects after the signal, or does not end in time. */
  async unlessAborted<T>(work: () => Promise<T>): Promise<T | undefined> {
    return await unlessAborted(this.signal, () => Promise.race([work(), this.#graceEnd]))
  }

  [DISPOSE](): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.limits.signal?.removeEventListener('abort', this.#abort)
  }
}

/** Undefined if the work rejects after the signal. */
export async function unlessAborted<T>(
  signal: AbortSignalLike | undefined,
  work: () => Promise<T>,
): Promise<Awaited<T> | undefined> {
  try {
    return await work()
  } catch (e) {
    if (signal?.aborted) return undefined
    throw e
  }
}
