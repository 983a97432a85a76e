/** Runs that keep the host busy, between which timers and signals have their turn. */

/** Milliseconds without one. */
const EVERY = 20

export class EventTurns {
  readonly #signal: AbortSignal | undefined
  #last = performance.now()

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
  }

  /** True if other events have not been handled for some time. */
  get isDue(): boolean {
    return performance.now() - this.#last > EVERY
  }

  /** Yields to the event loop; awaited before each run. @throws the abort reason of the signal */
  async next(): Promise<void> {
    if (this.isDue) {
      await new Promise((done) => setImmediate(done))
      this.#last = performance.now()
    }
    this.#signal?.throwIfAborted()
  }
}
