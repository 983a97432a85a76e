/**
 * Selects the elements and vectors to prune: ranks are global, ascending by (score, layer, position), and exact.
 *
 * Elements are too many to sort, so the threshold is found by a radix select: a histogram of the high half of their bits
 * finds the bucket, a histogram of the low half within it the exact value. Each pass reads the layers once, and a last pass
 * marks the elements below the threshold.
 */
import { bitsOf } from './scores.ts'
import type { LayerScores, LayerShape, Mask } from './types.ts'

/** Number of elements to prune at a sparsity, with a tolerance for rounding: 0.29 of 100 is 29. */
export const targetOf = (sparsity: number, elements: number): number =>
  Math.min(elements, Math.floor(sparsity * elements + 1e-6))

export const elementsOf = (shapes: readonly LayerShape[]): number =>
  shapes.reduce((sum, s) => sum + s.rows * s.cols, 0)

/** Maximum number of elements that each layer may lose. */
export const layerCapacities = (
  { shapes, limits }: LayerScores,
  map = (limit: number): number => limit,
): number[] => shapes.map((s, k) => targetOf(map(limits[k]!), s.rows * s.cols))

/** Selects the `target` lowest elements that are not excluded, at most `capacities[k]` in layer k. */
interface ElementSelection {
  readonly target: number
  readonly capacities: readonly number[]
  /** Masks of elements that are not candidates. */
  readonly excluded?: readonly Mask[]
}

const HALF = 65536

/** Marks (1) the elements of lowest rank. */
export async function lowestElements(layers: LayerScores, selection: ElementSelection): Promise<Mask[]> {
  const { target, capacities, excluded } = selection
  const { shapes } = layers
  const marks = shapes.map((s) => new Uint8Array(s.rows * s.cols))
  if (target <= 0) return marks
  const layerCounts = new Uint32Array(HALF)
  const totals = new Float64Array(HALF)
  const eachLayer = async (pass: string, work: (bits: Uint32Array, k: number) => void): Promise<void> => {
    for (let k = 0; k < shapes.length; k++) work(bitsOf(await layers.scores(k, pass)), k)
  }
  await eachLayer('elements, coarsely', (bits, k) => {
    countHigh(bits, excluded?.[k], layerCounts.fill(0))
    addTruncated(capacities[k]!, layerCounts, totals)
  })
  const coarse = findBucket(totals, target)
  const below = new Float64Array(shapes.length)
  totals.fill(0)
  await eachLayer('elements, finely', (bits, k) => {
    below[k] = countLow(bits, excluded?.[k], coarse.bucket, layerCounts.fill(0))
    addTruncated(capacities[k]! - below[k]!, layerCounts, totals)
  })
  const fine = findBucket(totals, target - coarse.below)
  const threshold = coarse.bucket * HALF + fine.bucket
  // Number of elements equal to the threshold that are pruned; all of these if capacities are exhausted before the target.
  let ties = target - coarse.below - fine.below
  await eachLayer('elements, marked', (bits, k) => {
    const { less, equal } = countAround(bits, excluded?.[k], threshold)
    const room = Math.max(0, capacities[k]! - less)
    const tied = Math.min(ties, equal, room)
    ties -= tied
    if (less <= capacities[k]!) mark(bits, excluded?.[k], threshold, tied, marks[k]!)
    else {
      const { threshold: localThreshold, ties: localTies } = layerThreshold(
        bits,
        excluded?.[k],
        capacities[k]!,
        layerCounts,
      )
      mark(bits, excluded?.[k], localThreshold, localTies, marks[k]!)
    }
  })
  return marks
}

/**
 * Index of the bucket where the cumulative count reaches the target, and the count below it; the last bucket if it never
 * does.
 */
function findBucket(
  counts: ArrayLike<number>,
  target: number,
): { readonly bucket: number; readonly below: number } {
  let below = 0
  for (let bucket = 0; bucket < counts.length; bucket++) {
    if (below + counts[bucket]! >= target) return { bucket, below }
    below += counts[bucket]!
  }
  return { bucket: counts.length - 1, below: below - counts[counts.length - 1]! }
}

/** Adds the histogram of one layer, truncated to its `limit` lowest elements. */
function addTruncated(limit: number, layerCounts: Uint32Array, totals: Float64Array): void {
  let remaining = limit
  for (let k = 0; k < HALF && remaining > 0; k++) {
    const n = Math.min(remaining, layerCounts[k]!)
    totals[k] = totals[k]! + n
    remaining -= n
  }
}

function countHigh(bits: Uint32Array, excluded: Mask | undefined, counts: Uint32Array): void {
  if (excluded) {
    for (let i = 0; i < bits.length; i++) if (excluded[i] === 0) counts[bits[i]! >>> 16]!++
  } else for (let i = 0; i < bits.length; i++) counts[bits[i]! >>> 16]!++
}

/** Histogram of the low halves of elements with a given high half. @returns the number of elements with a smaller high half */
function countLow(bits: Uint32Array, excluded: Mask | undefined, high: number, counts: Uint32Array): number {
  let below = 0
  for (let i = 0; i < bits.length; i++) {
    if (excluded !== undefined && excluded[i] !== 0) continue
    const h = bits[i]! >>> 16
    if (h < high) below++
    else if (h === high) counts[bits[i]! & 0xffff]!++
  }
  return below
}

function countAround(bits: Uint32Array, excluded: Mask | undefined, threshold: number) {
  let less = 0
  let equal = 0
  for (let i = 0; i < bits.length; i++) {
    if (bits[i]! > threshold || (excluded !== undefined && excluded[i] !== 0)) continue
    if (bits[i]! < threshold) less++
    else equal++
  }
  return { less, equal }
}

/** Threshold of the n lowest elements of one layer, and the number of pruned elements equal to it. */
function layerThreshold(bits: Uint32Array, excluded: Mask | undefined, n: number, counts: Uint32Array) {
  countHigh(bits, excluded, counts.fill(0))
  const coarse = findBucket(counts, n)
  countLow(bits, excluded, coarse.bucket, counts.fill(0))
  const fine = findBucket(counts, n - coarse.below)
  return { threshold: coarse.bucket * HALF + fine.bucket, ties: n - coarse.below - fine.below }
}

/** Marks elements below the threshold, and the first `ties` elements equal to it. */
function mark(
  bits: Uint32Array,
  excluded: Mask | undefined,
  threshold: number,
  ties: number,
  out: Mask,
): void {
  let remaining = ties
  for (let i = 0; i < bits.length; i++) {
    if (bits[i]! > threshold || (excluded !== undefined && excluded[i] !== 0)) continue
    if (bits[i]! < threshold) out[i] = 1
    else if (remaining > 0) {
      out[i] = 1
      remaining--
    }
  }
}

/** Rows, columns or blocks of the layers, which are pruned as a whole. */
interface Vectors {
  readonly pass: string
  /** Number of vectors of a layer. */
  count(shape: LayerShape, layer: number): number
  /** Adds to each vector of a layer the squares of its elements' scores, and sets its number of elements. */
  measure(scores: Float32Array, squares: Float64Array, sizes: Uint32Array, layer: number): void
}

/** Scores of the vectors of a layer, and 1 for those that are pruned. */
interface RankedVectors {
  readonly scores: Float64Array
  readonly marks: Uint8Array
}

/**
 * Marks vectors in the order of (score, layer, position) while they fit into `target` elements, and stops at the first that does
 * not. Vectors that exceed their layer's limit are skipped.
 */
export async function lowestVectors(
  layers: LayerScores,
  vectors: Vectors,
  target: number,
  capacities: readonly number[],
): Promise<RankedVectors[]> {
  const { shapes } = layers
  const counts = shapes.map((shape, k) => vectors.count(shape, k))
  const starts = counts.map((_, k) => counts.slice(0, k).reduce((a, b) => a + b, 0))
  const all = counts.reduce((a, b) => a + b, 0)
  const scores = new Float64Array(all)
  const sizes = new Uint32Array(all)
  const layerOf = new Uint32Array(all)
  const marks = new Uint8Array(all)
  const ranked: RankedVectors[] = []
  for (const [k, start] of starts.entries()) {
    const end = start + counts[k]!
    layerOf.fill(k, start, end)
    const own = { scores: scores.subarray(start, end), marks: marks.subarray(start, end) }
    vectors.measure(await layers.scores(k, vectors.pass), own.scores, sizes.subarray(start, end), k)
    for (let v = start; v < end; v++) scores[v] = layers.vectorScore(scores[v]!, sizes[v]!)
    ranked.push(own)
  }
  const remaining = Float64Array.from(capacities)
  let pruned = 0
  const order = Uint32Array.from(scores.keys()).sort((a, b) =>
    scores[a] === scores[b] ? a - b : scores[a]! - scores[b]!,
  )
  for (const v of order) {
    const layer = layerOf[v]!
    const size = sizes[v]!
    if (size > remaining[layer]!) continue
    if (pruned + size > target) break
    pruned += size
    remaining[layer] = remaining[layer]! - size
    marks[v] = 1
  }
  return ranked
}

/** Marks (1) the n best of the first `count` values. Of equal values, later ones are better, because earlier ones rank lower. */
export function best(values: ArrayLike<number>, count: number, n: number, out: Uint8Array): void {
  out.fill(n >= count ? 1 : 0, 0, count)
  if (n >= count) return
  for (let round = 0; round < n; round++) {
    let bestIndex = -1
    for (let i = 0; i < count; i++)
      if (out[i] === 0 && (bestIndex < 0 || values[i]! >= values[bestIndex]!)) bestIndex = i
    out[bestIndex] = 1
  }
}
