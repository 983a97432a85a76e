/** Gradient boosting of regression trees for squared errors (Friedman, 2001), over features in quantile bins. */
import { permutation, Random } from '../../run/bind/sources/random-tensors.ts'
import type { Trees } from './model.ts'

export interface BoostingOptions {
  readonly trees: number
  readonly depth: number
  /** Learning rate: the factor of each tree's prediction. */
  readonly rate: number
  readonly minLeafRows: number
  readonly rowShare: number
  readonly featureShare: number
  /** Shrinkage of leaves towards zero, as a number of rows with residual 0. */
  readonly shrink: number
  readonly seed: number
}

export const DEFAULT_BOOSTING: BoostingOptions = {
  trees: 500,
  depth: 6,
  rate: 0.05,
  minLeafRows: 8,
  rowShare: 0.7,
  featureShare: 0.5,
  shrink: 4,
  seed: 1,
}

const BINS = 48

interface BinnedFeatures {
  /** By feature, the bin of each row. */
  readonly bins: readonly Uint8Array[]
  /** By feature, the upper bound (inclusive) of each bin but the last. */
  readonly edges: readonly Float64Array[]
}

function binFeatures(rows: readonly Float64Array[]): BinnedFeatures {
  const features = rows[0]?.length ?? 0
  const edges: Float64Array[] = []
  const bins: Uint8Array[] = []
  for (let f = 0; f < features; f++) {
    const sorted = Float64Array.from(rows, (r) => r[f]!).sort()
    const cuts = new Set<number>()
    for (let b = 1; b < BINS; b++) {
      const index = Math.floor((b * sorted.length) / BINS)
      // Midpoint between neighbours, so that no training value equals an edge.
      if (index > 0 && sorted[index - 1]! < sorted[index]!)
        cuts.add((sorted[index - 1]! + sorted[index]!) / 2)
    }
    const featureEdges = Float64Array.from(cuts)
    edges.push(featureEdges)
    bins.push(Uint8Array.from(rows, (r) => featureEdges.findIndex((e) => r[f]! <= e) & 0xff))
    const last = featureEdges.length
    bins[f]!.forEach((b, k) => {
      if (b === 0xff) bins[f]![k] = last
    })
  }
  return { bins, edges }
}

/** Fits trees whose sum approximates `targets`, with a weight for each row. */
export function fitTrees(
  rows: readonly Float64Array[],
  targets: readonly number[],
  weights: readonly number[],
  options: BoostingOptions = DEFAULT_BOOSTING,
): Trees {
  const random = new Random(options.seed)
  const boosting = new Boosting(binFeatures(rows), Float64Array.from(targets), weights, options)
  const features = rows[0]?.length ?? 0
  for (let t = 0; t < options.trees; t++) {
    const allRows = permutation(rows.length, random)
    const sampleRows = allRows.slice(0, Math.ceil(rows.length * options.rowShare))
    const sampleFeatures = permutation(features, random).slice(0, Math.ceil(features * options.featureShare))
    boosting.trees.roots.push(boosting.trees.feature.length)
    boosting.grow(sampleRows, allRows, sampleFeatures, options.depth)
  }
  return boosting.trees
}

class Boosting {
  readonly trees = {
    roots: [] as number[],
    feature: [] as number[],
    value: [] as number[],
    right: [] as number[],
  }

  constructor(
    private readonly data: BinnedFeatures,
    private readonly residual: Float64Array,
    private readonly weights: readonly number[],
    private readonly options: BoostingOptions,
  ) {}

  /** Grows a tree: splits and leaves are fitted to `sampleRows`; the residuals of `allRows` are updated. */
  grow(sampleRows: Int32Array, allRows: Int32Array, features: Int32Array, depth: number): void {
    const { trees, data } = this
    const node = trees.feature.length
    const split = depth > 0 ? this.#bestSplit(sampleRows, features) : null
    if (!split) {
      const value = this.#leafValue(sampleRows)
      trees.feature.push(-1)
      trees.value.push(value)
      trees.right.push(0)
      for (const r of allRows) this.residual[r]! -= value
      return
    }
    const { feature, bin } = split
    const bins = data.bins[feature]!
    trees.feature.push(feature)
    trees.value.push(Number(data.edges[feature]![bin]!.toPrecision(6)))
    trees.right.push(0)
    const side = (rows: Int32Array, left: boolean): Int32Array => rows.filter((r) => bins[r]! <= bin === left)
    this.grow(side(sampleRows, true), side(allRows, true), features, depth - 1)
    trees.right[node] = trees.feature.length
    this.grow(side(sampleRows, false), side(allRows, false), features, depth - 1)
  }

  #leafValue(rows: Int32Array): number {
    let [sum, weight] = [0, this.options.shrink]
    for (const r of rows) {
      sum += this.weights[r]! * this.residual[r]!
      weight += this.weights[r]!
    }
    return Number(((this.options.rate * sum) / weight).toPrecision(5))
  }

  #bestSplit(
    rows: Int32Array,
    features: Int32Array,
  ): { readonly feature: number; readonly bin: number } | null {
    const { minLeafRows: least, shrink } = this.options
    if (rows.length < 2 * least) return null
    let best: { feature: number; bin: number } | null = null
    let [total, weight] = [0, 0]
    for (const r of rows) {
      total += this.weights[r]! * this.residual[r]!
      weight += this.weights[r]!
    }
    let bestGain = (total * total) / (weight + shrink) + 1e-9
    const sums = new Float64Array(BINS + 1)
    const weightSums = new Float64Array(BINS + 1)
    const counts = new Int32Array(BINS + 1)
    for (const f of features) {
      for (const array of [sums, weightSums, counts]) array.fill(0)
      const featureBins = this.data.bins[f]!
      for (const r of rows) {
        const b = featureBins[r]!
        sums[b]! += this.weights[r]! * this.residual[r]!
        weightSums[b]! += this.weights[r]!
        counts[b]!++
      }
      let [leftSum, leftWeight, leftCount] = [0, 0, 0]
      for (let b = 0; b < this.data.edges[f]!.length; b++) {
        leftSum += sums[b]!
        leftWeight += weightSums[b]!
        leftCount += counts[b]!
        if (leftCount < least || rows.length - leftCount < least) continue
        const gain =
          (leftSum * leftSum) / (leftWeight + shrink) +
          (total - leftSum) ** 2 / (weight - leftWeight + shrink)
        if (gain <= bestGain) continue
        bestGain = gain
        best = { feature: f, bin: b }
      }
    }
    return best
  }
}
