/**
 * Gradient boosting of regression trees for squared errors (Friedman, 2001), over features in quantile bins; rows and
 * features are drawn for each tree.
 */
import { permutation, Random } from '../../run/bind/random-tensors.ts'
import type { Trees } from './trees.ts'

export interface Boosting {
  readonly trees: number
  readonly depth: number
  /** Learning rate: the share of each tree's prediction. */
  readonly rate: number
  /** Rows of a leaf, at least. */
  readonly least: number
  readonly rowShare: number
  readonly featureShare: number
  /** Shrinkage of leaves towards zero, as a number of rows with residual 0. */
  readonly shrink: number
  readonly seed: number
}

export const USUAL: Boosting = {
  trees: 500,
  depth: 6,
  rate: 0.05,
  least: 8,
  rowShare: 0.7,
  featureShare: 0.5,
  shrink: 4,
  seed: 1,
}

const BINS = 48

interface Binned {
  /** By feature: the bin of each row. */
  readonly bins: readonly Uint8Array[]
  /** By feature: values up to and including which a row is in the bin. */
  readonly edges: readonly Float64Array[]
}

function binned(rows: readonly Float64Array[]): Binned {
  const features = rows[0]?.length ?? 0
  const edges: Float64Array[] = []
  const bins: Uint8Array[] = []
  for (let f = 0; f < features; f++) {
    const sorted = Float64Array.from(rows, (r) => r[f]!).sort()
    const cuts = new Set<number>()
    for (let b = 1; b < BINS; b++) {
      const at = Math.floor((b * sorted.length) / BINS)
      // Half way between neighbours: nothing that was seen lies on an edge.
      if (at > 0 && sorted[at - 1]! < sorted[at]!) cuts.add((sorted[at - 1]! + sorted[at]!) / 2)
    }
    const own = Float64Array.from(cuts)
    edges.push(own)
    bins.push(Uint8Array.from(rows, (r) => own.findIndex((e) => r[f]! <= e) & 0xff))
    const last = own.length
    bins[f]!.forEach((b, k) => {
      if (b === 0xff) bins[f]![k] = last
    })
  }
  return { bins, edges }
}

/** Trees whose sum is near `targets`; `weights` of rows. */
export function boosted(
  rows: readonly Float64Array[],
  targets: readonly number[],
  weights: readonly number[],
  o: Boosting = USUAL,
): Trees {
  const random = new Random(o.seed)
  const data = binned(rows)
  const features = data.bins.length
  const out = { roots: [] as number[], feature: [] as number[], value: [] as number[], right: [] as number[] }
  const residual = Float64Array.from(targets)
  for (let t = 0; t < o.trees; t++) {
    const all = permutation(rows.length, random)
    const drawn = all.slice(0, Math.ceil(rows.length * o.rowShare))
    const chosen = permutation(features, random).slice(0, Math.ceil(features * o.featureShare))
    out.roots.push(out.feature.length)
    grow(data, residual, weights, drawn, all, chosen, o.depth, o, out)
  }
  return out
}

interface Growing {
  readonly feature: number[]
  readonly value: number[]
  readonly right: number[]
}

/** `drawn` rows decide; of `all` rows the residuals are moved. */
function grow(
  data: Binned,
  residual: Float64Array,
  weights: readonly number[],
  drawn: Int32Array,
  all: Int32Array,
  features: Int32Array,
  depth: number,
  o: Boosting,
  out: Growing,
): void {
  const node = out.feature.length
  const best = depth > 0 ? bestSplit(data, residual, weights, drawn, features, o) : null
  if (!best) {
    let [sum, weight] = [0, o.shrink]
    for (const r of drawn) {
      sum += weights[r]! * residual[r]!
      weight += weights[r]!
    }
    const value = Number(((o.rate * sum) / weight).toPrecision(5))
    out.feature.push(-1)
    out.value.push(value)
    out.right.push(0)
    for (const r of all) residual[r]! -= value
    return
  }
  const { feature, bin } = best
  const bins = data.bins[feature]!
  out.feature.push(feature)
  out.value.push(Number(data.edges[feature]![bin]!.toPrecision(6)))
  out.right.push(0)
  const side = (rows: Int32Array, left: boolean): Int32Array => rows.filter((r) => bins[r]! <= bin === left)
  const rest = [features, depth - 1, o, out] as const
  grow(data, residual, weights, side(drawn, true), side(all, true), ...rest)
  out.right[node] = out.feature.length
  grow(data, residual, weights, side(drawn, false), side(all, false), ...rest)
}

function bestSplit(
  { bins, edges }: Binned,
  residual: Float64Array,
  weights: readonly number[],
  rows: Int32Array,
  features: Int32Array,
  { least, shrink }: Boosting,
): { readonly feature: number; readonly bin: number } | null {
  if (rows.length < 2 * least) return null
  let best: { feature: number; bin: number } | null = null
  let [total, weight] = [0, 0]
  for (const r of rows) {
    total += weights[r]! * residual[r]!
    weight += weights[r]!
  }
  let most = (total * total) / (weight + shrink) + 1e-9
  const sums = new Float64Array(BINS + 1)
  const heavy = new Float64Array(BINS + 1)
  const counts = new Int32Array(BINS + 1)
  for (const f of features) {
    sums.fill(0)
    heavy.fill(0)
    counts.fill(0)
    const of = bins[f]!
    for (const r of rows) {
      const b = of[r]!
      sums[b]! += weights[r]! * residual[r]!
      heavy[b]! += weights[r]!
      counts[b]!++
    }
    let [sum, own, n] = [0, 0, 0]
    for (let b = 0; b < edges[f]!.length; b++) {
      sum += sums[b]!
      own += heavy[b]!
      n += counts[b]!
      if (n < least || rows.length - n < least) continue
      const gain = (sum * sum) / (own + shrink) + (total - sum) ** 2 / (weight - own + shrink)
      if (gain > most) {
        most = gain
        best = { feature: f, bin: b }
      }
    }
  }
  return best
}
