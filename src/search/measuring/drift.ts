/**
 * Corrects times for drift of the device's speed, as measured by a reference kernel: clocks fall under heat, and other
 * processes use the device. A change of the reference's time is assumed to apply equally to all kernels.
 */
import { medianInterval } from './median-interval.ts'

/** Number of references before and after a sample that determine its correction. */
const NEIGHBOURS = 2
/** Relative deviation treated as noise of the reference. */
const NOISE = 0.03
/**
 * Maximum correction: a reference that takes many times as long was interrupted, which does not affect its neighbours.
 */
export const MAX_DRIFT = 2

export interface Drift {
  /** Milliseconds of the reference, in order. */
  readonly samples: readonly number[]
  /** Share of the candidates' samples taken while the device was unusually fast or slow. */
  readonly disturbed: number
  /** Maximum ratio of the reference's time to its median. */
  readonly slowest: number
}

export class References {
  readonly #samples: number[] = []

  add(ms: number): void {
    this.#samples.push(ms)
  }

  /** Number of reference samples so far: the index for samples taken now. */
  get count(): number {
    return this.#samples.length
  }

  /** Divisors that correct samples for drift, given the number of references before each. */
  factors(counts: readonly number[]): readonly number[] {
    if (this.#samples.length === 0) return counts.map(() => 1)
    const median = medianOf(this.#samples)
    const cache = new Map<number, number>()
    const factor = (index: number): number => {
      // Single outliers belong to the reference; the median of its neighbours follows lasting changes.
      const ratio =
        medianOf(this.#samples.slice(Math.max(0, index - NEIGHBOURS), index + NEIGHBOURS)) / median
      if (!(Number.isFinite(ratio) && ratio > 0 && Math.abs(ratio - 1) > NOISE)) return 1
      return Math.min(MAX_DRIFT, Math.max(1 / MAX_DRIFT, ratio))
    }
    return counts.map((index) => {
      const f = cache.get(index) ?? factor(index)
      cache.set(index, f)
      return f
    })
  }

  /** @param counts - For each sample, the number of references before it */
  drift(counts: readonly number[]): Drift {
    const factors = this.factors(counts)
    return {
      samples: this.#samples,
      disturbed: counts.length === 0 ? 0 : factors.filter((f) => f !== 1).length / counts.length,
      slowest: factors.reduce((a, b) => Math.max(a, b), 1),
    }
  }
}

const medianOf = (samples: readonly number[]): number => medianInterval(samples).median
