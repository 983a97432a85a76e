/** Yields to the event loop between runs that occupy the host, so that timers and signals are handled. */

/** Milliseconds between two yields. */
const INTERVAL_MS = 20

export class EventTurns {
  readonly #signal: AbortSignal | undefined
  #last = performance.now()

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
  }

  /** True if other events have not been handled for some time. */
  get isDue(): boolean {
    return performance.now() - this.#last > INTERVAL_MS
  }

  /** Yields to the event loop; awaited before each run. @throws the abort reason of the signal */
  async next(): Promise<void> {
    if (this.isDue) {
      await new Promise((resolve) => setImmediate(resolve))
      this.#last = performance.now()
    }
    this.#signal?.throwIfAborted()
  }
}
