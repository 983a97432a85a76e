/** A sparse matrix by rows, and samples of its rows, or of its columns as the rows of its transpose. */
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { ascending } from '../../columns/allocate.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { goldenSequence } from '../../run/bind/sources/random-tensors.ts'
import { type CoordTensor, namedArrays, type Tensor } from '../../storage/tensor.ts'
import { type Dimension, isSortable, type RowOrder } from './outer-dimension.ts'
import type { Rows } from './statistics.ts'

/** Maximum of rows plus columns: beyond it, their counters take gigabytes. */
const MAX_ROWS_AND_COLUMNS = 2 ** 27

/** The rows of a matrix bound by coordinates or rows; otherwise `null`. @throws SptError `search/too-large` */
function rowsOf(t: Tensor): Rows | null {
  const [rows, columns] = t.shape
  if (t.shape.length !== 2 || rows === undefined || columns === undefined) return null
  if (rows + columns > MAX_ROWS_AND_COLUMNS)
    failWith(
      'search/too-large',
      `a matrix of ${rows} × ${columns} has too many rows and columns for the cost model, which counts each of them`,
      {
        expected: `at most ${MAX_ROWS_AND_COLUMNS} together`,
        hint: 'number the rows and columns that have elements, or search without a prior',
      },
    )
  if (t.kind === 'stored') {
    const levels = namedArrays(t).map(([, arrays]) => arrays)
    const [level] = levels
    // Packed index arrays have fewer words than elements.
    const isUnpacked = level?.indices?.length === level?.indptr?.at(-1)
    return levels.length === 1 &&
      level?.indptr &&
      level.indices &&
      isUnpacked &&
      level.indptr.length === rows + 1
      ? { rows, columns, indptr: level.indptr, indices: level.indices }
      : null
  }
  if (t.kind !== 'coords') return null
  const [i, j] = t.coords
  if (!i || !j) return null
  const indptr = new Int32Array(rows + 1)
  let isAscending = true
  for (let e = 0; e < i.length; e++) {
    indptr[i[e]! + 1]!++
    if (e > 0 && i[e]! < i[e - 1]!) isAscending = false
  }
  for (let r = 0; r < rows; r++) indptr[r + 1]! += indptr[r]!
  if (isAscending) return { rows, columns, indptr, indices: j }
  const next = indptr.slice()
  const indices = new Int32Array(j.length)
  for (let e = 0; e < j.length; e++) indices[next[i[e]!]!++] = j[e]!
  return { rows, columns, indptr, indices }
}

/** The transpose: the same matrix by columns. */
function transpose({ rows, columns, indptr, indices }: Rows): Rows {
  const starts = new Int32Array(columns + 1)
  const count = indptr[rows] ?? 0
  for (let e = 0; e < count; e++) starts[indices[e]! + 1]!++
  for (let c = 0; c < columns; c++) starts[c + 1]! += starts[c]!
  const next = starts.slice()
  const rowIndices = new Int32Array(count)
  for (let r = 0; r < rows; r++)
    for (let e = indptr[r]!; e < indptr[r + 1]!; e++) rowIndices[next[indices[e]!]!++] = r
  return { rows: columns, columns: rows, indptr: starts, indices: rowIndices }
}

const transposeTensor = (t: CoordTensor): CoordTensor => ({
  ...t,
  shape: t.shape.toReversed(),
  coords: t.coords.toReversed(),
})

/** Some rows as a matrix of their own, with the number of rows of the whole matrix that each of them represents. */
export interface Stratum {
  readonly tensor: CoordTensor
  readonly rows: number
  readonly weight: number
}

/** A matrix as strata of its rows; if columns are sampled, `rows` counts columns. */
export interface Sample {
  readonly strata: readonly Stratum[]
  /** True if the first stratum holds all rows. */
  readonly isWhole: boolean
  readonly rows: number
}

/** Samples of tensors, each drawn once for all formats that are built from it. */
export class Samples {
  readonly #rows = new Map<Tensor, Rows | null>()
  readonly #columns = new Map<Tensor, Rows>()
  readonly #samples = new Map<Tensor, Map<string, Sample>>()
  readonly #orders = new Map<Tensor, Map<string, Int32Array>>()
  readonly #withoutElements = new Set<Tensor>()

  rowsOf(t: Tensor): Rows | null {
    if (!this.#rows.has(t)) this.#rows.set(t, rowsOf(t))
    return this.#rows.get(t)!
  }

  /** Sets the rows of a tensor that this thread has without its elements. */
  setRows(t: Tensor, rows: Rows): void {
    this.#rows.set(t, rows)
    this.#withoutElements.add(t)
  }

  expectElements(t: Tensor): void {
    invariant(!this.#withoutElements.has(t), 'only the rows of the tensor are here')
  }

  /**
   * Draws strata of rows or of columns, once for all formats. Windows are neighbours in `order`; `null` for a tensor
   * without rows.
   * @throws SptError `search/too-large`
   */
  draw(
    t: Tensor,
    along: Dimension,
    elements: number,
    maxRows = Number.POSITIVE_INFINITY,
    order: RowOrder | null = null,
  ): Sample | null {
    const key = `${along} ${elements} ${maxRows} ${order?.key ?? ''}`
    const samples = getOrAdd(this.#samples, t, () => new Map<string, Sample>())
    const cached = samples.get(key)
    if (cached) return cached
    const rows = along === 0 ? this.rowsOf(t) : this.#columnsOf(t)
    if (!rows) return null
    const computeOrder = order ? () => this.#order(t, along, rows, order) : undefined
    const { strata, isWhole } = drawSample(rows, elements, maxRows, computeOrder)
    const sample = {
      strata: along === 0 ? strata : strata.map((s) => ({ ...s, tensor: transposeTensor(s.tensor) })),
      isWhole,
      rows: rows.rows,
    }
    samples.set(key, sample)
    return sample
  }

  #order(t: Tensor, along: Dimension, rows: Rows, order: RowOrder): Int32Array | undefined {
    if (!isSortable(rows)) return undefined
    const orders = getOrAdd(this.#orders, t, () => new Map<string, Int32Array>())
    return getOrAdd(orders, `${along} ${order.key}`, () => order.permute(rows))
  }

  #columnsOf(t: Tensor): Rows | null {
    const rows = this.rowsOf(t)
    return rows && getOrAdd(this.#columns, t, () => transpose(rows))
  }
}

/** Consecutive rows of a window, as required by blocks, strips and slices of formats. */
const WINDOW = 16
/** Rows longer than this multiple of the mean are long. */
const LONG = 8
const LONG_LEAST = 64
/** The longest row gets its own stratum from this multiple of the mean. */
const UNEVEN = 2

const nonzerosOf = (m: Rows): number => m.indptr[m.rows] ?? 0

/** Above this many rows, empty windows get a stratum: they dominate matrices with few elements. */
const MAX_MIXED_ROWS = 1 << 18

/** True if strata would hold as many elements as the whole matrix. */
const isSmall = (m: Rows, elements: number, maxRows: number): boolean =>
  nonzerosOf(m) <= 2 * elements && m.rows <= Math.min(MAX_MIXED_ROWS, maxRows)

/**
 * Strata of a matrix: windows of neighbouring rows spread over it; the long rows, which few windows would include; and
 * all of the longest rows, because one of them may take longer than the others together. Each has about `elements`
 * elements and between one and `maxRows` rows. A small matrix is one stratum, the whole matrix.
 * @param order - Returns all rows, in the order in which they are neighbours; not called for a small matrix
 */
export function drawSample(
  m: Rows,
  elements: number,
  maxRows: number,
  order?: () => Int32Array | undefined,
): { readonly strata: readonly Stratum[]; readonly isWhole: boolean } {
  if (isSmall(m, elements, maxRows)) {
    const tensor = extractRows(m, ascending(m.rows, 'rows'))
    return { strata: [{ tensor, rows: m.rows, weight: 1 }], isWhole: true }
  }
  const rowIds = order?.() ?? ascending(m.rows, 'rows')
  return { strata: drawWindows(m, elements, maxRows, rowIds), isWhole: false }
}

function drawWindows(m: Rows, elements: number, maxRows: number, rowIds: Int32Array): readonly Stratum[] {
  const length = (r: number): number => m.indptr[r + 1]! - m.indptr[r]!
  const mean = nonzerosOf(m) / m.rows
  const bound = Math.max(LONG_LEAST, LONG * mean)
  let longestRow = 0
  for (const r of rowIds) if (length(r) > length(longestRow)) longestRow = r
  const isLong = (r: number): boolean => length(r) > bound || (r === longestRow && length(r) > UNEVEN * mean)
  const longRows = rowIds.filter(isLong)
  const otherRows = rowIds.filter((r) => !isLong(r))
  const descending = longRows.toSorted((a, b) => length(b) - length(a))
  let [longestCount, longestElements] = [0, 0]
  while (
    longestCount < Math.min(maxRows, descending.length) &&
    (longestCount === 0 || longestElements + length(descending[longestCount]!) <= elements)
  )
    longestElements += length(descending[longestCount++]!)
  const longestRows = descending.slice(0, longestCount).sort((a, b) => a - b)
  const remainingLong = descending.slice(longestCount).sort((a, b) => a - b)
  return [
    ...drawShortRows(m, otherRows, elements, maxRows),
    drawRows(m, remainingLong, elements, maxRows, 1),
    drawRows(m, longestRows, Number.POSITIVE_INFINITY, maxRows, 1),
  ].filter((s) => s.rows > 0)
}

function drawShortRows(m: Rows, rows: Int32Array, elements: number, maxRows: number): readonly Stratum[] {
  if (rows.length * Math.min(1, elements / Math.max(1, nonzerosOf(m))) <= MAX_MIXED_ROWS)
    return [drawRows(m, rows, elements, maxRows, WINDOW)]
  const isOccupied = (r: number): boolean => {
    const start = r - (r % WINDOW)
    return m.indptr[Math.min(m.rows, start + WINDOW)]! > m.indptr[start]!
  }
  const parts = [rows.filter(isOccupied), rows.filter((r) => !isOccupied(r))]
  return parts.map((stratum) => drawRows(m, stratum, elements, maxRows, WINDOW))
}

/** A stratum of windows of `neighbours` consecutive rows, stratified by their number of elements. */
function drawRows(m: Rows, rows: Int32Array, elements: number, maxRows: number, neighbours: number): Stratum {
  const count = rows.reduce((n, r) => n + m.indptr[r + 1]! - m.indptr[r]!, 0)
  const window = Math.min(neighbours, maxRows)
  const windows = Math.ceil(rows.length / window)
  const chosen = Math.min(
    windows,
    Math.max(1, Math.ceil((windows * Math.min(elements, count)) / Math.max(1, count))),
    Math.max(1, Math.floor(maxRows / window)),
  )
  // Windows are drawn at regular quantiles of their number of elements, so that few windows estimate the total well.
  const sizes = new Float64Array(windows)
  rows.forEach((r, k) => {
    sizes[Math.floor(k / window)]! += m.indptr[r + 1]! - m.indptr[r]!
  })
  const bySize =
    chosen < windows ? ascending(windows, 'windows').sort((x, y) => sizes[x]! - sizes[y]! || x - y) : null
  const windowIds = Array.from({ length: chosen }, (_, k) => {
    const index = Math.floor(((k + goldenSequence(k, 0.5)) * windows) / chosen)
    return bySize ? bySize[index]! : index
  }).sort((x, y) => x - y)
  const sampleRows = new Int32Array(Math.min(rows.length, chosen * window))
  let n = 0
  for (const windowId of windowIds) {
    const start = windowId * window
    for (let r = start; r < Math.min(rows.length, start + window); r++) sampleRows[n++] = rows[r]!
  }
  return { tensor: extractRows(m, sampleRows.subarray(0, n)), rows: n, weight: n > 0 ? rows.length / n : 0 }
}

function extractRows(m: Rows, rows: Int32Array): CoordTensor {
  const count = rows.reduce((n, r) => n + m.indptr[r + 1]! - m.indptr[r]!, 0)
  const [i, j] = [new Int32Array(count), new Int32Array(count)]
  let next = 0
  rows.forEach((r, k) => {
    for (let e = m.indptr[r]!; e < m.indptr[r + 1]!; e++, next++) {
      i[next] = k
      j[next] = m.indices[e]!
    }
  })
  return { kind: 'coords', shape: [rows.length, m.columns], coords: [i, j], values: null, dtype: 'f32' }
}
