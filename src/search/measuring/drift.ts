/**
 * Corrects times for drift of the device's speed, as measured by a reference kernel: clocks fall under heat, and other
 * processes use the device. A change of the reference's time is assumed to apply equally to all kernels.
 */

import type { Binding } from '../../api/built/binding.ts'
import { parseProgram } from '../../api/programs/program.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { Device } from '../../runtime/device.ts'
import { medianInterval } from './median-interval.ts'

/** Number of references before and after a sample that determine its correction. */
const NEIGHBOURS = 2
/** Relative deviation treated as noise of the reference. */
const NOISE = 0.03
/** Maximum correction: a reference that takes many times as long was interrupted by itself. */
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
    return counts.map((index) => getOrAdd(cache, index, () => factor(index)))
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

// Reference kernel for drift: constant work, so that its time reflects the speed of the device.

/** Loads and operations per byte are similar to those of sparse kernels. */
const SOURCE = `
kernel reference(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[i] in
  buffer Z: f32[i] out
  iterate sum [i] as S {
    Z[i] = 3.0 * X[i] + Y[i]
  }
}
schedule reference.blocks {
  split i by 256 -> (io, ii)
  bind io to block.x, ii to thread.x
}
`

/** Number of elements: microseconds on a GPU, in its cache, and some hundred microseconds on cpu. */
const ELEMENTS = { cpu: 2 ** 18, other: 2 ** 20 } as const

/**
 * Prepares the reference kernel; the caller frees it with `reference.free()` and `reference.kernel.release()`. @throws
 * SptError as `build` and `bind`
 */
export async function prepareReference(device: Device): Promise<Binding> {
  const isCpu = device.kind === 'cpu'
  const program = parseProgram(SOURCE, 'reference.spt')
  const kernel = isCpu ? program.kernel() : program.kernel().schedule('blocks')
  const compiled = await kernel.build(device)
  // The values do not affect the time.
  const n = isCpu ? ELEMENTS.cpu : ELEMENTS.other
  const values = new Float32Array(n)
  const dense = { kind: 'dense', shape: [n], values, dtype: 'f32' } as const
  return compiled.bind({ n, X: dense, Y: dense })
}
