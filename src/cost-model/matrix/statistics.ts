/** Statistics of a sparse matrix before any format is built: lengths, distances, and from windows blocks and reuse. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type Distribution, distributionOf } from './index-facts.ts'

/** A matrix by rows: `indices[indptr[r]] …` are the columns of row r, in any order. */
export interface Rows {
  readonly rows: number
  readonly columns: number
  readonly indptr: ArrayLike<number>
  readonly indices: ArrayLike<number>
}

export interface MatrixStatistics {
  readonly rows: number
  readonly columns: number
  readonly nonzeros: number
  readonly rowLengths: Distribution
  readonly columnLengths: Distribution
  readonly emptyRows: number
  /** Gini coefficient of the lengths: 0 if all are equal, near 1 if few rows have most elements. */
  readonly rowGini: number
  readonly columnGini: number
  /** Fill ratio of nonempty blocks of b × b, by b; from windows. */
  readonly blockDensity: ReadonlyMap<number, number>
  /** By w, elements per distinct column in w neighbouring rows: the reuse of a gathered value; from windows. */
  readonly reuse: ReadonlyMap<number, number>
  /** Mean distance of an element's column from the diagonal of its row, relative to the number of columns. */
  readonly bandwidth: number
  /** Mean distance of neighbouring columns of a row, relative to the number of columns. */
  readonly gap: number
  /** Share of neighbouring elements in a row with consecutive columns. */
  readonly adjacent: number
}

export const BLOCKS = [2, 4, 8, 16, 32] as const
export const WINDOWS = [2, 8, 32, 128, 512] as const
/** Number of elements in all windows together. */
const SAMPLED = 1 << 16

function gini(counts: ReadonlyMap<number, number>): number {
  const ascending = [...counts].sort(([a], [b]) => a - b)
  let [items, sum, area] = [0, 0, 0]
  for (const [length, n] of ascending) {
    area += n * (2 * sum + n * length)
    sum += n * length
    items += n
  }
  return sum === 0 ? 0 : 1 - area / (items * sum)
}

function histogram(lengths: ArrayLike<number>): Map<number, number> {
  const counts = new Map<number, number>()
  for (let k = 0; k < lengths.length; k++) counts.set(lengths[k]!, (counts.get(lengths[k]!) ?? 0) + 1)
  return counts
}

/** One pass over the elements for lengths and distances, a sample of windows for blocks and reuse. */
export function statisticsOf(matrix: Rows): MatrixStatistics {
  const { rows, columns, indptr, indices } = matrix
  invariant(indptr.length === rows + 1, () => `${indptr.length} offsets of ${rows} rows`)
  const nonzeros = rows === 0 ? 0 : indptr[rows]!
  const rowCounts = new Int32Array(rows)
  const columnCounts = new Int32Array(columns)
  let [diagonalDistance, gapSum, pairs, adjacent] = [0, 0, 0, 0]
  const slope = columns / Math.max(1, rows)
  for (let r = 0; r < rows; r++) {
    const [start, end] = [indptr[r]!, indptr[r + 1]!]
    rowCounts[r] = end - start
    const diagonal = r * slope
    let previous = -1
    for (let e = start; e < end; e++) {
      const c = indices[e]!
      columnCounts[c]!++
      diagonalDistance += Math.abs(c - diagonal)
      if (previous >= 0) {
        const distance = Math.abs(c - previous)
        gapSum += distance
        pairs++
        if (distance === 1) adjacent++
      }
      previous = c
    }
  }
  const rowHistogram = histogram(rowCounts)
  const columnHistogram = histogram(columnCounts)
  const { blockDensity, reuse } = windows(matrix, nonzeros)
  const width = Math.max(1, columns)
  return {
    rows,
    columns,
    nonzeros,
    rowLengths: distributionOf(rowHistogram),
    columnLengths: distributionOf(columnHistogram),
    emptyRows: rows === 0 ? 0 : (rowHistogram.get(0) ?? 0) / rows,
    rowGini: gini(rowHistogram),
    columnGini: gini(columnHistogram),
    blockDensity,
    reuse,
    bandwidth: nonzeros === 0 ? 0 : diagonalDistance / nonzeros / width,
    gap: pairs === 0 ? 0 : gapSum / pairs / width,
    adjacent: pairs === 0 ? 0 : adjacent / pairs,
  }
}

/** First rows of windows of `height` rows, spread over the matrix, with about `SAMPLED` elements in all. */
function windowStarts({ rows }: Rows, nonzeros: number, height: number): number[] {
  const count = Math.ceil(rows / height)
  const max = Math.ceil((count * SAMPLED) / Math.max(1, nonzeros))
  const sampled = Math.min(count, max)
  return Array.from({ length: sampled }, (_, k) => Math.floor((k * count) / sampled) * height)
}

/** Number of elements in `height` rows from `start` on, and of distinct groups of `per` columns that they occupy. */
function countGroups(m: Rows, start: number, height: number, per: number, seen: Int32Array, stamp: number) {
  let [elements, distinct] = [0, 0]
  for (let e = m.indptr[start]!; e < m.indptr[Math.min(m.rows, start + height)]!; e++) {
    const g = Math.floor(m.indices[e]! / per)
    elements++
    if (seen[g] !== stamp) {
      seen[g] = stamp
      distinct++
    }
  }
  return { elements, different: distinct }
}

function windows(m: Rows, nonzeros: number): Pick<MatrixStatistics, 'blockDensity' | 'reuse'> {
  const seen = new Int32Array(m.columns)
  let stamp = 0
  const perGroup = (height: number, per: number): number => {
    let [elements, distinct] = [0, 0]
    for (const start of windowStarts(m, nonzeros, height)) {
      const window = countGroups(m, start, height, per, seen, ++stamp)
      elements += window.elements
      distinct += window.different
    }
    return distinct === 0 ? 1 : elements / distinct
  }
  return {
    blockDensity: new Map(BLOCKS.map((b) => [b, Math.min(1, perGroup(b, b) / (b * b))])),
    reuse: new Map(WINDOWS.map((w) => [w, perGroup(w, 1)])),
  }
}
