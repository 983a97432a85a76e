/** Gradient boosting of regression trees for squared errors (Friedman, 2001), over features in quantile bins. */
import { permutation, Random } from '../../run/bind/sources/random-tensors.ts'
import type { Trees } from './trained-models.ts'

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
  const data = binFeatures(rows)
  const features = data.bins.length
  const trees = {
    roots: [] as number[],
    feature: [] as number[],
    value: [] as number[],
    right: [] as number[],
  }
  const residual = Float64Array.from(targets)
  for (let t = 0; t < options.trees; t++) {
    const allRows = permutation(rows.length, random)
    const sampleRows = allRows.slice(0, Math.ceil(rows.length * options.rowShare))
    const sampleFeatures = permutation(features, random).slice(0, Math.ceil(features * options.featureShare))
    trees.roots.push(trees.feature.length)
    grow(data, residual, weights, sampleRows, allRows, sampleFeatures, options.depth, options, trees)
  }
  return trees
}

interface TreeArrays {
  readonly feature: number[]
  readonly value: number[]
  readonly right: number[]
}

/** Grows a tree: splits and leaves are fitted to `sampleRows`; the residuals of `allRows` are updated. */
function grow(
  data: BinnedFeatures,
  residual: Float64Array,
  weights: readonly number[],
  sampleRows: Int32Array,
  allRows: Int32Array,
  features: Int32Array,
  depth: number,
  options: BoostingOptions,
  trees: TreeArrays,
): void {
  const node = trees.feature.length
  const split = depth > 0 ? bestSplit(data, residual, weights, sampleRows, features, options) : null
  if (!split) {
    let [sum, weight] = [0, options.shrink]
    for (const r of sampleRows) {
      sum += weights[r]! * residual[r]!
      weight += weights[r]!
    }
    const value = Number(((options.rate * sum) / weight).toPrecision(5))
    trees.feature.push(-1)
    trees.value.push(value)
    trees.right.push(0)
    for (const r of allRows) residual[r]! -= value
    return
  }
  const { feature, bin } = split
  const bins = data.bins[feature]!
  trees.feature.push(feature)
  trees.value.push(Number(data.edges[feature]![bin]!.toPrecision(6)))
  trees.right.push(0)
  const side = (rows: Int32Array, left: boolean): Int32Array => rows.filter((r) => bins[r]! <= bin === left)
  const args = [features, depth - 1, options, trees] as const
  grow(data, residual, weights, side(sampleRows, true), side(allRows, true), ...args)
  trees.right[node] = trees.feature.length
  grow(data, residual, weights, side(sampleRows, false), side(allRows, false), ...args)
}

function bestSplit(
  { bins, edges }: BinnedFeatures,
  residual: Float64Array,
  weights: readonly number[],
  rows: Int32Array,
  features: Int32Array,
  { minLeafRows: least, shrink }: BoostingOptions,
): { readonly feature: number; readonly bin: number } | null {
  if (rows.length < 2 * least) return null
  let best: { feature: number; bin: number } | null = null
  let [total, weight] = [0, 0]
  for (const r of rows) {
    total += weights[r]! * residual[r]!
    weight += weights[r]!
  }
  let bestGain = (total * total) / (weight + shrink) + 1e-9
  const sums = new Float64Array(BINS + 1)
  const weightSums = new Float64Array(BINS + 1)
  const counts = new Int32Array(BINS + 1)
  for (const f of features) {
    sums.fill(0)
    weightSums.fill(0)
    counts.fill(0)
    const featureBins = bins[f]!
    for (const r of rows) {
      const b = featureBins[r]!
      sums[b]! += weights[r]! * residual[r]!
      weightSums[b]! += weights[r]!
      counts[b]!++
    }
    let [leftSum, leftWeight, leftCount] = [0, 0, 0]
    for (let b = 0; b < edges[f]!.length; b++) {
      leftSum += sums[b]!
      leftWeight += weightSums[b]!
      leftCount += counts[b]!
      if (leftCount < least || rows.length - leftCount < least) continue
      const gain =
        (leftSum * leftSum) / (leftWeight + shrink) + (total - leftSum) ** 2 / (weight - leftWeight + shrink)
      if (gain > bestGain) {
        bestGain = gain
        best = { feature: f, bin: b }
      }
    }
  }
  return best
}
