/**
 * Corrects times for drift of the device's speed (clocks drop when it heats up, and others use it too), measured by a
 * reference kernel throughout. A change of the reference's time is assumed to apply to all kernels equally.
 */
import { medianInterval } from './median-interval.ts'

/** Number of references before and after a sample that determine its correction. */
const NEAR = 2
/** Relative deviation treated as noise of the reference. */
const USUAL = 0.03
/** Maximum correction: a reference that takes many times as long was interrupted, and does not apply to its neighbours. */
export const MOST_DRIFT = 2

export interface Drift {
  /** Milliseconds of the reference, in order. */
  readonly samples: readonly number[]
  /** Share of the samples of candidates that were taken while the device was unusually fast or slow. */
  readonly disturbed: number
  /** The times of the reference at the slowest, over the usual. */
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
  factors(before: readonly number[]): readonly number[] {
    if (this.#samples.length === 0) return before.map(() => 1)
    const usual = medianOf(this.#samples)
    const known = new Map<number, number>()
    const factor = (at: number): number => {
      // Single outliers are the reference's: the median of its neighbours follows what lasts.
      const near = medianOf(this.#samples.slice(Math.max(0, at - NEAR), at + NEAR)) / usual
      if (!(Number.isFinite(near) && near > 0 && Math.abs(near - 1) > USUAL)) return 1
      return Math.min(MOST_DRIFT, Math.max(1 / MOST_DRIFT, near))
    }
    return before.map((at) => {
      const f = known.get(at) ?? factor(at)
      known.set(at, f)
      return f
    })
  }

  /** @param before of all samples, how many references there were */
  drift(before: readonly number[]): Drift {
    const factors = this.factors(before)
    return {
      samples: this.#samples,
      disturbed: before.length === 0 ? 0 : factors.filter((f) => f !== 1).length / before.length,
      slowest: factors.reduce((a, b) => Math.max(a, b), 1),
    }
  }
}

const medianOf = (samples: readonly number[]): number => medianInterval(samples).median
