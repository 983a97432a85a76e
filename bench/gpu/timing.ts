/** How runs are timed, the same for ours and for peers. Times are in microseconds. */

import type { MeasureOptions } from '../../src/runtime/measure.ts'
import type { PeerStream, PeerTimer } from '../peers/stream.ts'
import { median } from './statistics.ts'

export interface Times {
  /** Median of runs between two events each, in a graph with them, 10 warm-ups before. */
  readonly event: number
  /** The same with 256 MB written before each run. */
  readonly flushed: number
  /** A run of `COPIES` in one graph, one after the other; `null` for what takes long. */
  readonly backToBack: number | null
  readonly repeats: number
}

/** Runs in a graph that is timed back to back. */
const COPIES = 20
/** A few runs, to choose who is measured. */
const SCOUT = { warmUps: 3, repeats: 5, long: 100_000 } as const
const WARM_UPS = 10
/** Runs shorter than `below` are also timed back to back, and compared so when one of the two is under `compare`. */
const BACK_TO_BACK = { below: 60, compare: 20, repeats: 30 } as const
/** Runs that take longer than this are repeated less often than 50 times, 10 times at least. */
const PATIENCE = 40_000

const repeatsFor = (us: number): number =>
  us <= PATIENCE ? 50 : Math.max(10, Math.floor((50 * PATIENCE) / us))

/** Microseconds of runs of ours, one by one or the means of batches. */
export type Samples = (options: MeasureOptions) => Promise<readonly number[]>

/** Microseconds of a few runs; of one where that takes long. */
export async function scoutBy(samples: Samples): Promise<number> {
  const once = median(await samples({ warmups: 0, repeats: 1 }))
  if (once > SCOUT.long) return once
  return median(await samples({ warmups: SCOUT.warmUps, repeats: SCOUT.repeats }))
}

export async function measureBy(samples: Samples, scouted: number): Promise<Times> {
  const repeats = repeatsFor(scouted)
  const event = median(await samples({ warmups: WARM_UPS, repeats }))
  const cold = { warmups: SCOUT.warmUps, repeats: Math.ceil(repeats / 2), flush: true }
  const back = { warmups: COPIES, repeats: BACK_TO_BACK.repeats, batch: COPIES }
  return {
    event,
    flushed: median(await samples(cold)),
    backToBack: event < BACK_TO_BACK.below ? median(await samples(back)) : null,
    repeats,
  }
}

/** A call of a library, scouted and measured as our launches are. */
export class PeerRun {
  readonly #stream: PeerStream
  readonly #enqueue: () => void
  /** Some calls cannot be recorded in a graph. */
  #recordable = true

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
    const once = this.#timed(1, 0, 1)
    return once > SCOUT.long ? once : this.#timed(1, SCOUT.warmUps, SCOUT.repeats)
  }

  measure(scouted: number): Times {
    const repeats = repeatsFor(scouted)
    const event = this.#timed(1, WARM_UPS, repeats)
    return {
      event,
      flushed: this.#timed(1, SCOUT.warmUps, Math.ceil(repeats / 2), true),
      backToBack: event < BACK_TO_BACK.below ? this.#timed(COPIES, 1, BACK_TO_BACK.repeats) : null,
      repeats,
    }
  }

  #timed(copies: number, warmUps: number, repeats: number, flush = false): number {
    const timer = this.#timer(copies)
    try {
      timer.time(warmUps)
      return median(timer.time(repeats, flush))
    } finally {
      timer.free()
    }
  }

  #timer(copies: number): PeerTimer {
    if (this.#recordable)
      try {
        return this.#stream.graph(this.#enqueue, copies)
      } catch {
        this.#recordable = false
      }
    return this.#stream.calls(this.#enqueue, copies)
  }
}

/** The times that two are compared by: back to back where either is short and both are known so. */
export function comparable(a: Times, b: Times): readonly [number, number] {
  const short = Math.min(a.event, b.event) < BACK_TO_BACK.compare
  return short && a.backToBack !== null && b.backToBack !== null
    ? [a.backToBack, b.backToBack]
    : [a.event, b.event]
}
