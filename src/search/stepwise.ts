/** Long work as steps: it runs at once, or pauses so that timers and signals are handled. */

/** Each `yield` is a pause; the work between two pauses is at most that of a single point. */
export type Stepwise<T> = Generator<undefined, T, undefined>

/** To its end, without a pause. */
export function atOnce<T>(work: Stepwise<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Runs to the end, yielding to the event loop every 20 ms. @throws the abort reason of `signal` */
export async function inTurns<T>(work: Stepwise<T>, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted()
  const turns = new EventTurns(signal)
  try {
    for (;;) {
      const step = work.next()
      if (step.done) return step.value
      if (turns.isDue) await turns.next()
    }
  } finally {
    // Also ends the generators that this generator delegates to.
    work.return(undefined as never)
  }
}

export function* eachOf<T, R>(list: Iterable<T>, work: (item: T) => Stepwise<R>): Stepwise<R[]> {
  const out: R[] = []
  for (const x of list) out.push(yield* work(x))
  return out
}

// Yields to the event loop between runs that occupy the host, so that timers and signals are handled.

const INTERVAL_MS = 20

export class EventTurns {
  #last = performance.now()

  constructor(private readonly signal: AbortSignal | undefined) {}

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
    this.signal?.throwIfAborted()
  }
}
