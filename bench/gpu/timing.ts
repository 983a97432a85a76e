/** How runs are timed, the same for ours and for peers. Times are in microseconds. */
import type { PeerStream } from '../peers/stream.ts'
import { median } from './statistics.ts'

export interface Times {
  /** Median of runs between two events each, 10 warm-ups before them. */
  readonly event: number
  /** The same with 256 MB written before each run. */
  readonly flushed: number
  /** One run of those in a graph, one after the other; `null` for what takes long. */
  readonly backToBack: number | null
  readonly repeats: number
}

/** A few runs, to choose who is measured. */
export const SCOUT = { warmUps: 3, repeats: 5 } as const
/** Runs shorter than `below` are also timed back to back, and compared so when one of the two is under `compare`. */
export const BACK_TO_BACK = { below: 60, compare: 20, repeats: 30 } as const
/** Runs that take longer than this are repeated less often than 50 times, 10 times at least. */
const PATIENCE = 40_000

export const repeatsFor = (us: number): number =>
  us <= PATIENCE ? 50 : Math.max(10, Math.floor((50 * PATIENCE) / us))

/** A call of a library, scouted and measured as our launches are. */
export class PeerRun {
  readonly #stream: PeerStream
  readonly #enqueue: () => void

  constructor(stream: PeerStream, enqueue: () => void) {
    this.#stream = stream
    this.#enqueue = enqueue
  }

  run(): void {
    this.#stream.enter()
    this.#enqueue()
    this.#stream.finish()
  }

  scout(): number {
    return median(this.#stream.time(this.#enqueue, SCOUT.repeats, { warmUps: SCOUT.warmUps }))
  }

  measure(scouted: number): Times {
    const repeats = repeatsFor(scouted)
    const event = median(this.#stream.time(this.#enqueue, repeats))
    const flushed = median(
      this.#stream.time(this.#enqueue, Math.ceil(repeats / 2), { warmUps: 3, flush: true }),
    )
    const backToBack =
      event < BACK_TO_BACK.below ? this.#stream.timeGraph(this.#enqueue, BACK_TO_BACK.repeats) : null
    return { event, flushed, backToBack, repeats }
  }
}

/** The times that two are compared by: back to back where either is short and both are known so. */
export function comparable(a: Times, b: Times): readonly [number, number] {
  const short = Math.min(a.event, b.event) < BACK_TO_BACK.compare
  return short && a.backToBack !== null && b.backToBack !== null
    ? [a.backToBack, b.backToBack]
    : [a.event, b.event]
}
