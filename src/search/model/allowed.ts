/** Limits the elements built for predictions: formats pad, and their parameters multiply the stored elements. */
import { Allowance, allocatingWithin } from '../../columns/allocate.ts'
import { storedElements, type Tensor } from '../../storage/tensor.ts'

interface Bound {
  readonly least: number
  /** For each entry, row and column. */
  readonly each: number
}
/** Elements that predicting may allocate for one stratum. */
const PREDICTED: Bound = { least: 1 << 22, each: 16 }
/** Bound for kernels to be measured: those that store more are not the fastest, and take seconds to build. */
const MEASURED: Bound = { least: 1 << 27, each: 64 }
/** Safety factor when reducing rows, because not all memory grows with them. */
const SLACK = 2

const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0)

const elementsFor = ({ least, each }: Bound, tensors: readonly Tensor[]): number =>
  least + each * sum(tensors.map((t) => storedElements(t) + sum(t.shape)))

/** Number of elements that predictions may allocate for formats of these tensors. */
export const allowanceFor = (tensors: readonly Tensor[], least = PREDICTED.least): Allowance =>
  new Allowance(elementsFor({ ...PREDICTED, least }, tensors))

/** Elements that bringing these tensors into one format may allocate where it is tried. */
export const mostMeasured = (tensors: readonly Tensor[]): number => elementsFor(MEASURED, tensors)

/** Rows of a sample, of which too much would be built. */
interface Over {
  readonly rows: number
  /** Factor by which the limit was exceeded. */
  readonly by: number
}

/**
 * Builds from samples of rows, and again from fewer rows until the result is within the allowance.
 * @param build - With at most this many rows of each stratum; builds each by `within`
 * @throws SptError `bind/too-many-elements` if one row is too much; errors of `build`
 */
export function withFewerRows<T>(
  build: (most: number, within: <R>(rows: number, tensors: readonly Tensor[], f: () => R) => R) => T,
  allowance = allowanceFor,
): T {
  let over: Over | null = null
  const within = <R>(rows: number, tensors: readonly Tensor[], f: () => R): R => {
    const own = allowance(tensors)
    try {
      return allocatingWithin(own, f)
    } finally {
      if (own.refused !== null) over = { rows, by: own.refused / own.most }
    }
  }
  for (let most = Number.POSITIVE_INFINITY; ; ) {
    over = null
    try {
      return build(most, within)
    } catch (e) {
      const found = over as Over | null
      if (!found || found.rows <= 1) throw e
      most = Math.max(1, Math.floor(found.rows / (SLACK * found.by)))
    }
  }
}
