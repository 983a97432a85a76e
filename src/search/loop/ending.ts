/** When a search is to end: its caller's signal, and the clock. */

import type { SearchOptions } from './search-options.ts'

export type Limits = Pick<SearchOptions, 'signal' | 'seconds' | 'graceSeconds'>

const GRACE_SECONDS = 30
/** The longest that timers of JavaScript can be set to. */
const LONGEST_TIMER = 2 ** 31 - 1

/** The signal of evaluations: the caller's, and the clock's. */
export class Ending {
  readonly #controller = new AbortController()
  readonly #timer: ReturnType<typeof setTimeout> | undefined
  readonly #clear: () => void
  readonly #grace: DelayedSignal
  readonly #graceEnd: Promise<undefined>

  constructor({ signal, seconds, graceSeconds = GRACE_SECONDS }: Limits) {
    this.#grace = new DelayedSignal(this.signal, graceSeconds * 1000)
    this.#graceEnd = new Promise((resolve) => {
      this.#grace.signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    const abort = (): void => this.#controller.abort(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    if (seconds !== undefined && Number.isFinite(seconds))
      this.#timer = setTimeout(
        () => this.#controller.abort(new Error('the time of the search is over')),
        Math.min(seconds * 1000, LONGEST_TIMER),
      )
    this.#clear = () => signal?.removeEventListener('abort', abort)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Undefined if the work rejects after the signal, or does not end in time. */
  async unlessAborted<T>(work: () => Promise<T>): Promise<T | undefined> {
    return await unlessAborted(this.signal, () => Promise.race([work(), this.#graceEnd]))
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#grace.clear()
    this.#clear()
  }
}

/** A signal that aborts some milliseconds after another; never if they are infinite. */
export class DelayedSignal {
  readonly #controller = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly source: AbortSignal,
    private readonly ms: number,
  ) {
    if (source.aborted) this.#begin()
    else source.addEventListener('abort', this.#begin, { once: true })
  }

  readonly #begin = (): void => {
    if (!Number.isFinite(this.ms)) return
    const abort = (): void => this.#controller.abort(this.source.reason)
    this.#timer = setTimeout(abort, Math.min(this.ms, LONGEST_TIMER))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.source.removeEventListener('abort', this.#begin)
  }
}

/** Undefined if the work rejects after the signal. */
export async function unlessAborted<T>(
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<Awaited<T> | undefined> {
  try {
    return await work()
  } catch (e) {
    if (signal?.aborted) return undefined
    throw e
  }
}
