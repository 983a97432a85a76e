/** Trained cost models as data. */
import type { DeviceKind } from '../../runtime/device.ts'
import type { Coefficients } from '../analytic.ts'

// Sums of regression trees, as boosting makes them: small to store, and evaluated in microseconds.

/**
 * Trees one after the other in flat arrays. The nodes of tree t begin at `roots[t]`. Node n is a leaf of value
 * `value[n]` if `feature[n]` is negative; otherwise features up to `value[n]` continue at node `n + 1`, others at
 * `right[n]`.
 */
export interface Trees {
  readonly roots: readonly number[]
  readonly feature: readonly number[]
  readonly value: readonly number[]
  readonly right: readonly number[]
}

export function evaluateTrees({ roots, feature, value, right }: Trees, x: ArrayLike<number>): number {
  let sum = 0
  for (const root of roots) {
    let n = root
    while (feature[n]! >= 0) n = x[feature[n]!]! <= value[n]! ? n + 1 : right[n]!
    sum += value[n]!
  }
  return sum
}

/** A trained model, as stored in `data/models/KIND.json`. */
export interface CostModel {
  readonly version: number
  /** Kind of device; other kinds have other terms. */
  readonly kind: DeviceKind
  readonly chip: string
  /** Features used by the trees, in their order. */
  readonly features: readonly string[]
  readonly coefficients: Coefficients
  /** Trees that predict the logarithm of the correction. */
  readonly trees: Trees
}

/** Properties by which a device is assigned its model. */
export interface ModelledDevice {
  readonly name: string
  readonly driver?: string | undefined
  readonly isSoftware?: boolean | undefined
}
