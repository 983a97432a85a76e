/**
 * Statistics of a sparse matrix that the cost model uses before any format is built, collected in one cheap pass: lengths of
 * rows and columns, column distances, and, from windows of rows spread over the matrix, blocks and recurrence of columns.
 */
import { invariant } from '../../ast/diagnostic.ts'
import { type Distribution, distributionOf } from './distribution.ts'

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
  /** Share of rows without elements. */
  readonly emptyRows: number
  /** Gini's coefficient of the lengths: 0 where all are alike, near 1 where few have all. */
  readonly rowGini: number
  readonly columnGini: number
  /** Fill ratio of nonempty blocks of b × b, by b; from windows. */
  readonly blockDensity: ReadonlyMap<number, number>
  /** Elements for each different column of w neighbouring rows: how often what is read once is used. By w. Of windows. */
  readonly reuse: ReadonlyMap<number, number>
  /** Mean distance of an element's column from its row's place on the diagonal, over the columns. */
  readonly bandwidth: number
  /** Mean distance of neighbouring columns of a row, over the columns. */
  readonly gap: number
  /** Share of neighbouring elements in a row with consecutive columns. */
  readonly adjacent: number
}

export const BLOCKS = [2, 4, 8, 16, 32] as const
export const WINDOWS = [2, 8, 32, 128, 512] as const
/** Elements that the windows have together. */
const SAMPLED = 1 << 16

/** Gini's coefficient from a histogram of lengths. */
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

/** Linear in the elements for columns and distances, in a sample for all else. */
export function statisticsOf(matrix: Rows): MatrixStatistics {
  const { rows, columns, indptr, indices } = matrix
  invariant(indptr.length === rows + 1, () => `${indptr.length} offsets of ${rows} rows`)
  const nonzeros = rows === 0 ? 0 : indptr[rows]!
  const inRow = new Int32Array(rows)
  const inColumn = new Int32Array(columns)
  let [off, apart, pairs, adjacent] = [0, 0, 0, 0]
  const slope = columns / Math.max(1, rows)
  for (let r = 0; r < rows; r++) {
    const [from, to] = [indptr[r]!, indptr[r + 1]!]
    inRow[r] = to - from
    const diagonal = r * slope
    let before = -1
    for (let e = from; e < to; e++) {
      const c = indices[e]!
      inColumn[c]!++
      off += Math.abs(c - diagonal)
      if (before >= 0) {
        const distance = Math.abs(c - before)
        apart += distance
        pairs++
        if (distance === 1) adjacent++
      }
      before = c
    }
  }
  const ofRows = histogram(inRow)
  const ofColumns = histogram(inColumn)
  const { blockDensity, reuse } = windows(matrix, nonzeros)
  const wide = Math.max(1, columns)
  return {
    rows,
    columns,
    nonzeros,
    rowLengths: distributionOf(ofRows),
    columnLengths: distributionOf(ofColumns),
    emptyRows: rows === 0 ? 0 : (ofRows.get(0) ?? 0) / rows,
    rowGini: gini(ofRows),
    columnGini: gini(ofColumns),
    blockDensity,
    reuse,
    bandwidth: nonzeros === 0 ? 0 : off / nonzeros / wide,
    gap: pairs === 0 ? 0 : apart / pairs / wide,
    adjacent: pairs === 0 ? 0 : adjacent / pairs,
  }
}

/** First rows of windows of `height` rows, spread over the matrix, with about `SAMPLED` elements in all. */
function starts({ rows }: Rows, nonzeros: number, height: number): number[] {
  const whole = Math.ceil(rows / height)
  const most = Math.max(1, Math.ceil((whole * SAMPLED) / Math.max(1, nonzeros)))
  const taken = Math.min(whole, most)
  return Array.from({ length: taken }, (_, k) => Math.floor((k * whole) / taken) * height)
}

/** Number of elements in the rows from `from` on, and of distinct groups of `per` columns that they occupy. */
function groups(m: Rows, from: number, height: number, per: number, seen: Int32Array, stamp: number) {
  let [elements, different] = [0, 0]
  for (let e = m.indptr[from]!; e < m.indptr[Math.min(m.rows, from + height)]!; e++) {
    const g = Math.floor(m.indices[e]! / per)
    elements++
    if (seen[g] !== stamp) {
      seen[g] = stamp
      different++
    }
  }
  return { elements, different }
}

function windows(m: Rows, nonzeros: number): Pick<MatrixStatistics, 'blockDensity' | 'reuse'> {
  const seen = new Int32Array(m.columns)
  let stamp = 0
  const perGroup = (height: number, per: number): number => {
    let [elements, different] = [0, 0]
    for (const from of starts(m, nonzeros, height)) {
      const one = groups(m, from, height, per, seen, ++stamp)
      elements += one.elements
      different += one.different
    }
    return different === 0 ? 1 : elements / different
  }
  return {
    blockDensity: new Map(BLOCKS.map((b) => [b, Math.min(1, perGroup(b, b) / (b * b))])),
    reuse: new Map(WINDOWS.map((w) => [w, perGroup(w, 1)])),
  }
}
