/** Limits the elements built for predictions: formats pad, and their parameters multiply the stored elements. */
import { AllocationLimit, withAllocationLimit } from '../../columns/allocate.ts'
import { storedElements, type Tensor } from '../../storage/tensor.ts'

interface ElementLimit {
  readonly base: number
  /** For each stored element, row and column. */
  readonly perElement: number
}
/** Elements that predictions may allocate for one stratum. */
const PREDICTION_LIMIT: ElementLimit = { base: 1 << 22, perElement: 16 }
/** Limit for kernels to be measured: those that store more are never the fastest, and take seconds to build. */
const MEASUREMENT_LIMIT: ElementLimit = { base: 1 << 27, perElement: 64 }
/** Safety factor when reducing rows, because not all memory grows with their number. */
const SLACK = 2

const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0)

const elementLimit = ({ base, perElement }: ElementLimit, tensors: readonly Tensor[]): number =>
  base + perElement * sum(tensors.map((t) => storedElements(t) + sum(t.shape)))

/** Number of elements that predictions may allocate for formats of these tensors. */
export const allowanceFor = (tensors: readonly Tensor[], base = PREDICTION_LIMIT.base): AllocationLimit =>
  new AllocationLimit(elementLimit({ ...PREDICTION_LIMIT, base }, tensors))

/** Number of elements that converting these tensors into one candidate format may allocate. */
export const maxMeasuredElements = (tensors: readonly Tensor[]): number =>
  elementLimit(MEASUREMENT_LIMIT, tensors)

/** A sample whose conversion exceeded the limit. */
interface Excess {
  readonly rows: number
  /** Factor by which the limit was exceeded. */
  readonly factor: number
}

/**
 * Builds from samples of rows, and again from fewer rows until the result is within the limit.
 * @param build - Builds with at most `maxRows` rows of each stratum, each stratum by `within`
 * @throws SptError `bind/too-many-elements` if one row exceeds the limit; errors of `build`
 */
export function withFewerRows<T>(
  build: (maxRows: number, within: <R>(rows: number, tensors: readonly Tensor[], f: () => R) => R) => T,
  allowance = allowanceFor,
): T {
  let excess: Excess | null = null
  const within = <R>(rows: number, tensors: readonly Tensor[], f: () => R): R => {
    const limit = allowance(tensors)
    try {
      return withAllocationLimit(limit, f)
    } finally {
      if (limit.exceeded !== null) excess = { rows, factor: limit.exceeded / limit.max }
    }
  }
  for (let maxRows = Number.POSITIVE_INFINITY; ; ) {
    excess = null
    try {
      return build(maxRows, within)
    } catch (e) {
      const exceeded = excess as Excess | null
      if (!exceeded || exceeded.rows <= 1) throw e
      maxRows = Math.max(1, Math.floor(exceeded.rows / (SLACK * exceeded.factor)))
    }
  }
}
