/** A sparse tensor of two dimensions by rows, and samples of its rows, or of its columns as the rows of its transpose. */
import { fail, invariant } from '../../ast/diagnostic.ts'
import { ascending } from '../../columns/allocate.ts'
import { type CoordTensor, namedArrays, type Tensor } from '../../storage/tensor.ts'
import type { Dimension } from './outer-dimension.ts'
import { isSortable, type RowOrder } from './sorted-rows.ts'
import type { Rows } from './statistics.ts'

/** Rows and columns together: beyond, counters of each take gigabytes. */
const MOST = 2 ** 27

/**
 * The rows of a matrix that is bound by coordinates or by rows; `null` for anything else.
 * @throws SptError `search/too-large`
 */
export function rowsOf(t: Tensor): Rows | null {
  const [rows, columns] = t.shape
  if (t.shape.length !== 2 || rows === undefined || columns === undefined) return null
  if (rows + columns > MOST)
    fail({
      code: 'search/too-large',
      message: `a matrix of ${rows} × ${columns} has too many rows and columns for the cost model, which counts each of them`,
      expected: `at most ${MOST} together`,
      hint: 'number those that have elements, or search without a prior',
    })
  if (t.kind === 'stored') {
    const levels = namedArrays(t).map(([, arrays]) => arrays)
    const [only] = levels
    // Fewer where they are packed.
    const isWhole = only?.indices?.length === only?.indptr?.at(-1)
    return levels.length === 1 && only?.indptr && only.indices && isWhole && only.indptr.length === rows + 1
      ? { rows, columns, indptr: only.indptr, indices: only.indices }
      : null
  }
  if (t.kind !== 'coords') return null
  const [i, j] = t.coords
  if (!i || !j) return null
  const indptr = new Int32Array(rows + 1)
  let ascending = true
  for (let e = 0; e < i.length; e++) {
    indptr[i[e]! + 1]!++
    if (e > 0 && i[e]! < i[e - 1]!) ascending = false
  }
  for (let r = 0; r < rows; r++) indptr[r + 1]! += indptr[r]!
  if (ascending) return { rows, columns, indptr, indices: j }
  const next = indptr.slice()
  const indices = new Int32Array(j.length)
  for (let e = 0; e < j.length; e++) indices[next[i[e]!]!++] = j[e]!
  return { rows, columns, indptr, indices }
}

/** By columns. */
function transposed({ rows, columns, indptr, indices }: Rows): Rows {
  const starts = new Int32Array(columns + 1)
  const count = indptr[rows] ?? 0
  for (let e = 0; e < count; e++) starts[indices[e]! + 1]!++
  for (let c = 0; c < columns; c++) starts[c + 1]! += starts[c]!
  const next = starts.slice()
  const of = new Int32Array(count)
  for (let r = 0; r < rows; r++)
    for (let e = indptr[r]!; e < indptr[r + 1]!; e++) of[next[indices[e]!]!++] = r
  return { rows: columns, columns: rows, indptr: starts, indices: of }
}

const acrossTensor = (t: CoordTensor): CoordTensor => ({
  ...t,
  shape: t.shape.toReversed(),
  coords: t.coords.toReversed(),
})

/** Some rows as a matrix of their own, and how many rows of the whole each of them stands for. */
export interface Stratum {
  readonly tensor: CoordTensor
  readonly rows: number
  readonly weight: number
}

/** A matrix as samples of its rows; of columns, `rows` are columns. */
export interface Sample {
  readonly strata: readonly Stratum[]
  /** True if the first stratum holds all rows. */
  readonly isWhole: boolean
  /** Of the whole. */
  readonly rows: number
}

/** Samples of tensors, each drawn once for all formats that are built from it. */
export class Samples {
  readonly #rows = new Map<Tensor, Rows | null>()
  readonly #columns = new Map<Tensor, Rows>()
  readonly #samples = new Map<Tensor, Map<string, Sample>>()
  readonly #orders = new Map<Tensor, Map<string, Int32Array>>()
  readonly #withoutElements = new Set<Tensor>()

  /** As `rowsOf`. */
  rowsOf(t: Tensor): Rows | null {
    let known = this.#rows.get(t)
    if (known === undefined) {
      known = rowsOf(t)
      this.#rows.set(t, known)
    }
    return known
  }

  /** The rows of a tensor that is here without its elements. */
  put(t: Tensor, rows: Rows): void {
    this.#rows.set(t, rows)
    this.#withoutElements.add(t)
  }

  expectElements(t: Tensor): void {
    invariant(!this.#withoutElements.has(t), 'only the rows of the tensor are here')
  }

  /**
   * As `strata`, of rows or of columns, windows of which are neighbours in an `order`; `null` for what has no rows.
   * @throws SptError `search/too-large`
   */
  of(
    t: Tensor,
    along: Dimension,
    elements: number,
    most = Number.POSITIVE_INFINITY,
    order: RowOrder | null = null,
  ): Sample | null {
    const key = `${along} ${elements} ${most} ${order?.key ?? ''}`
    const ofTensor = this.#samples.get(t) ?? new Map<string, Sample>()
    const known = ofTensor.get(key)
    if (known) return known
    const rows = along === 0 ? this.rowsOf(t) : this.#columnsOf(t)
    if (!rows) return null
    const ordered = order ? () => this.#order(t, along, rows, order) : undefined
    const { drawn, isWhole } = drawnFrom(rows, elements, most, ordered)
    const sample = {
      strata: along === 0 ? drawn : drawn.map((s) => ({ ...s, tensor: acrossTensor(s.tensor) })),
      isWhole,
      rows: rows.rows,
    }
    this.#samples.set(t, ofTensor.set(key, sample))
    return sample
  }

  /** Found once, however much of the rows is drawn. */
  #order(t: Tensor, along: Dimension, rows: Rows, order: RowOrder): Int32Array | undefined {
    if (!isSortable(rows)) return undefined
    const ofTensor = this.#orders.get(t) ?? new Map<string, Int32Array>()
    const key = `${along} ${order.key}`
    const found = ofTensor.get(key) ?? order.of(rows)
    this.#orders.set(t, ofTensor.set(key, found))
    return found
  }

  #columnsOf(t: Tensor): Rows | null {
    const rows = this.rowsOf(t)
    if (!rows) return null
    const known = this.#columns.get(t) ?? transposed(rows)
    this.#columns.set(t, known)
    return known
  }
}

const GOLDEN = (Math.sqrt(5) - 1) / 2

/** Rows that neighbour each other in a sample, as blocks, strips and slices of formats need them. */
const WINDOW = 16
/** Rows longer than this multiple of the mean are long. */
const LONG = 8
const LONG_LEAST = 64
/** The longest row has its own stratum from this multiple of the mean. */
const UNEVEN = 2

const nonzerosOf = (m: Rows): number => m.indptr[m.rows] ?? 0

/** Above this many rows of a sample, empty regions get a stratum of their own: they dominate matrices with few elements. */
const MANY = 1 << 18

/** True if strata would hold as many elements as the whole matrix. */
const isSmall = (m: Rows, elements: number, most: number): boolean =>
  nonzerosOf(m) <= 2 * elements && m.rows <= Math.min(MANY, most)

/**
 * Windows of neighbouring rows spread over the matrix; by themselves the long rows, which few windows would meet; and the
 * longest of these, all of them, since one may take longer than all else: about `elements` elements of each, and rows, at
 * least one, `most` at most. The whole, where it has no more.
 * @param all - All rows, in the order in which they are neighbours
 */
export const strata = (
  m: Rows,
  elements: number,
  most = Number.POSITIVE_INFINITY,
  all?: Int32Array,
): readonly Stratum[] => drawnFrom(m, elements, most, all && (() => all)).drawn

/** The same, and whether it is the whole; `order` is asked for where it is not. */
function drawnFrom(
  m: Rows,
  elements: number,
  most: number,
  order?: () => Int32Array | undefined,
): { readonly drawn: readonly Stratum[]; readonly isWhole: boolean } {
  if (isSmall(m, elements, most)) {
    const tensor = part(m, ascending(m.rows, 'rows'))
    return { drawn: [{ tensor, rows: m.rows, weight: 1 }], isWhole: true }
  }
  const all = order?.() ?? ascending(m.rows, 'rows')
  return { drawn: windowsOf(m, elements, most, all), isWhole: false }
}

function windowsOf(m: Rows, elements: number, most: number, all: Int32Array): readonly Stratum[] {
  const length = (r: number): number => m.indptr[r + 1]! - m.indptr[r]!
  const mean = nonzerosOf(m) / m.rows
  const bound = Math.max(LONG_LEAST, LONG * mean)
  let longestRow = 0
  for (const r of all) if (length(r) > length(longestRow)) longestRow = r
  const isLong = (r: number): boolean => length(r) > bound || (r === longestRow && length(r) > UNEVEN * mean)
  const long = all.filter(isLong)
  const short = all.filter((r) => !isLong(r))
  const descending = long.toSorted((a, b) => length(b) - length(a))
  let [first, of] = [0, 0]
  while (
    first < Math.min(most, descending.length) &&
    (first === 0 || of + length(descending[first]!) <= elements)
  )
    of += length(descending[first++]!)
  const longest = descending.slice(0, first).sort((a, b) => a - b)
  const others = descending.slice(first).sort((a, b) => a - b)
  return [
    ...shortRows(m, short, elements, most),
    sampled(m, others, elements, most, 1),
    sampled(m, longest, Number.POSITIVE_INFINITY, most, 1),
  ].filter((s) => s.rows > 0)
}

function shortRows(m: Rows, rows: Int32Array, elements: number, most: number): readonly Stratum[] {
  if (rows.length * Math.min(1, elements / Math.max(1, nonzerosOf(m))) <= MANY)
    return [sampled(m, rows, elements, most, WINDOW)]
  const isHeld = (r: number): boolean => {
    const from = r - (r % WINDOW)
    return m.indptr[Math.min(m.rows, from + WINDOW)]! > m.indptr[from]!
  }
  const parts = [rows.filter(isHeld), rows.filter((r) => !isHeld(r))]
  return parts.map((own) => sampled(m, own, elements, most, WINDOW))
}

/** Places within equal shares that follow no period of the matrix: multiples of the golden ratio. */
const apart = (k: number): number => (0.5 + k * GOLDEN) % 1

function sampled(m: Rows, rows: Int32Array, elements: number, most: number, neighbours: number): Stratum {
  const of = rows.reduce((n, r) => n + m.indptr[r + 1]! - m.indptr[r]!, 0)
  const window = Math.min(neighbours, most)
  const windows = Math.ceil(rows.length / window)
  const taken = Math.min(
    windows,
    Math.max(1, Math.ceil((windows * Math.min(elements, of)) / Math.max(1, of))),
    Math.max(1, Math.floor(most / window)),
  )
  // By how much is in them, an equal share of each kind: what few windows say of the elements of all is near to it.
  const held = new Float64Array(windows)
  rows.forEach((r, k) => {
    held[Math.floor(k / window)]! += m.indptr[r + 1]! - m.indptr[r]!
  })
  const order =
    taken < windows ? ascending(windows, 'windows').sort((x, y) => held[x]! - held[y]! || x - y) : null
  const places = Array.from({ length: taken }, (_, k) => {
    const at = Math.floor(((k + apart(k)) * windows) / taken)
    return order ? order[at]! : at
  }).sort((x, y) => x - y)
  const chosen = new Int32Array(Math.min(rows.length, taken * window))
  let n = 0
  for (const place of places) {
    const from = place * window
    for (let r = from; r < Math.min(rows.length, from + window); r++) chosen[n++] = rows[r]!
  }
  return {
    tensor: part(m, chosen.subarray(0, n)),
    rows: n,
    weight: n > 0 ? rows.length / n : 0,
  }
}

function part(m: Rows, rows: Int32Array): CoordTensor {
  const count = rows.reduce((n, r) => n + m.indptr[r + 1]! - m.indptr[r]!, 0)
  const [i, j] = [new Int32Array(count), new Int32Array(count)]
  let at = 0
  rows.forEach((r, k) => {
    for (let e = m.indptr[r]!; e < m.indptr[r + 1]!; e++, at++) {
      i[at] = k
      j[at] = m.indices[e]!
    }
  })
  return { kind: 'coords', shape: [rows.length, m.columns], coords: [i, j], values: null, dtype: 'f32' }
}
