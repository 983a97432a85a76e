/**
 * Results against float64. A product C = A B is checked twice: some rows element by element (the longest, the first, the
 * last, random ones), and every row by its product with a random vector of signs, C s = A (B s) (Freivalds, 1977), so
 * that no row is left out however large the matrix is. Sampled products are checked at random nonzeros; all other
 * values have to be numbers, which what was poisoned before the run is not.
 */
import { type Csr, nonzeros } from './matrix.ts'
import { choose, signs } from './random.ts'

/** Unit roundoffs: of a product's factors as the units take them, and of a stored result. Sums are in f32. */
export interface Precision {
  readonly product: number
  readonly output: number
}

const F32 = 2 ** -24
export const PRECISION = {
  f32: { product: F32, output: F32 },
  tf32: { product: 2 ** -11, output: F32 },
  f16: { product: F32, output: 2 ** -11 },
  bf16: { product: F32, output: 2 ** -8 },
} as const satisfies Record<string, Precision>

export interface Verdict {
  readonly ok: boolean
  /** The largest error, as a share of the sum of the products' magnitudes. */
  readonly error: number
  /** What is wrong, or ''. */
  readonly problem: string
}

/** Multiply-adds that element-wise expectations may take. */
export const WORK = 2e7

/** Rounding error of a sum of `length` products, relative to the sum of their magnitudes: twice a random walk's. */
export const allowed = (length: number, p: Precision): number =>
  2 * p.product + F32 * (8 + 2 * Math.sqrt(length))

/** Errors of what is compared, and the first that is too large. */
export class Tally {
  error = 0
  problem = ''

  add(what: () => string, got: number, want: number, scale: number, bound: number): void {
    const off = Math.abs(got - want)
    const relative = scale > 0 ? off / scale : off
    if (relative > this.error) this.error = relative
    // Not a number is not within anything.
    if (!(off <= bound) && this.problem === '') this.problem = `${what()} is ${got}, not ${want}`
  }

  /** Every element is written; others than those that were computed are no more than that. */
  whole(got: Float32Array, name = ''): void {
    const missing = this.problem === '' ? got.findIndex(Number.isNaN) : -1
    if (missing >= 0) this.problem = `element ${missing}${name && ` of ${name}`} is not written`
  }

  get verdict(): Verdict {
    return { ok: this.problem === '', error: this.error, problem: this.problem }
  }
}

interface Row {
  readonly row: number
  readonly want: Float64Array
  readonly scale: Float64Array
}

/** What C = A B has to be; B is columns × width, both row-major. */
export class ExpectedProduct {
  readonly #A: Csr
  readonly #width: number
  readonly #signs: Int8Array
  readonly #rows: readonly Row[]
  /** A (B s), and the sum of |a| times the norms of B's rows, by row. */
  readonly #projected: Float64Array
  readonly #scale: Float64Array

  constructor(A: Csr, B: Float32Array, width: number) {
    this.#A = A
    this.#width = width
    this.#signs = signs(width)
    const { sums, norms } = this.#project(B)
    this.#projected = new Float64Array(A.rows)
    this.#scale = new Float64Array(A.rows)
    for (let r = 0; r < A.rows; r++) {
      let sum = 0
      let scale = 0
      for (let e = A.indptr[r]!; e < A.indptr[r + 1]!; e++) {
        const a = A.values[e]!
        sum += a * sums[A.indices[e]!]!
        scale += Math.abs(a) * norms[A.indices[e]!]!
      }
      this.#projected[r] = sum
      this.#scale[r] = scale
    }
    this.#rows = sampleRows(A, width).map((row) => expectedRow(A, B, width, row))
  }

  get checked(): string {
    return `${this.#rows.length} rows by element, all ${this.#A.rows} by projection`
  }

  check(C: Float32Array, p: Precision): Verdict {
    const { indptr } = this.#A
    const width = this.#width
    const tally = new Tally()
    for (const { row, want, scale } of this.#rows) {
      const bound = allowed(indptr[row + 1]! - indptr[row]!, p)
      for (let f = 0; f < width; f++) {
        const limit = bound * scale[f]! + p.output * Math.abs(want[f]!)
        tally.add(() => `element (${row}, ${f})`, C[row * width + f]!, want[f]!, scale[f]!, limit)
      }
    }
    const signs = this.#signs
    for (let r = 0; r < this.#A.rows; r++) {
      let sum = 0
      for (let f = 0, at = r * width; f < width; f++, at++) sum += C[at]! * signs[f]!
      const scale = this.#scale[r]!
      const limit = 6 * (allowed(indptr[r + 1]! - indptr[r]!, p) + p.output) * scale
      tally.add(() => `row ${r} times signs`, sum, this.#projected[r]!, scale, limit)
    }
    return tally.verdict
  }

  #project(B: Float32Array): { readonly sums: Float64Array; readonly norms: Float64Array } {
    const n = this.#A.columns
    const width = this.#width
    const signs = this.#signs
    const sums = new Float64Array(n)
    const norms = new Float64Array(n)
    for (let j = 0; j < n; j++) {
      let sum = 0
      let square = 0
      for (let f = 0, at = j * width; f < width; f++, at++) {
        const b = B[at]!
        sum += b * signs[f]!
        square += b * b
      }
      sums[j] = sum
      norms[j] = Math.sqrt(square)
    }
    return { sums, norms }
  }
}

/** The longest row, the first and the last, then random ones, as many as the work allows. */
function sampleRows(A: Csr, width: number): number[] {
  let longest = 0
  const length = (r: number): number => A.indptr[r + 1]! - A.indptr[r]!
  for (let r = 1; r < A.rows; r++) if (length(r) > length(longest)) longest = r
  const candidates = [longest, 0, A.rows - 1, ...choose(Math.min(A.rows, 4096), A.rows, 17)]
  const out = new Set<number>()
  let work = 0
  for (const row of candidates) {
    if (out.has(row)) continue
    work += length(row) * width
    if (work > WORK && out.size > 0) break
    out.add(row)
  }
  return [...out]
}

function expectedRow(A: Csr, B: Float32Array, width: number, row: number): Row {
  const want = new Float64Array(width)
  const scale = new Float64Array(width)
  for (let e = A.indptr[row]!; e < A.indptr[row + 1]!; e++) {
    const a = A.values[e]!
    const b = A.indices[e]! * width
    for (let f = 0; f < width; f++) {
      const product = a * B[b + f]!
      want[f]! += product
      scale[f]! += Math.abs(product)
    }
  }
  return { row, want, scale }
}

/** What X Yᵀ has to be at A's nonzeros, with A's values as factors or without. X is rows × depth, Y columns × depth. */
export class ExpectedSamples {
  readonly #depth: number
  readonly #entries: Int32Array
  readonly #weights: Float64Array
  readonly #want: Float64Array
  readonly #scale: Float64Array
  readonly #count: number

  constructor(A: Csr, X: Float32Array, Y: Float32Array, depth: number) {
    this.#depth = depth
    this.#count = nonzeros(A)
    const entries = choose(Math.min(this.#count, Math.floor(WORK / depth)), this.#count, 23)
    this.#entries = entries
    this.#weights = Float64Array.from(entries, (e) => A.values[e]!)
    this.#want = new Float64Array(entries.length)
    this.#scale = new Float64Array(entries.length)
    let row = 0
    for (let s = 0; s < entries.length; s++) {
      const e = entries[s]!
      while (A.indptr[row + 1]! <= e) row++
      const x = row * depth
      const y = A.indices[e]! * depth
      let sum = 0
      let scale = 0
      for (let k = 0; k < depth; k++) {
        const product = X[x + k]! * Y[y + k]!
        sum += product
        scale += Math.abs(product)
      }
      this.#want[s] = sum
      this.#scale[s] = scale
    }
  }

  get checked(): string {
    return `${this.#entries.length} of ${this.#count} nonzeros by element, the rest for being numbers`
  }

  /** Values in the order of A's nonzeros. */
  check(C: ArrayLike<number>, p: Precision, weighted: boolean): Verdict {
    const tally = new Tally()
    const bound = allowed(this.#depth, p) + p.output
    for (let s = 0; s < this.#entries.length; s++) {
      const e = this.#entries[s]!
      const weight = weighted ? this.#weights[s]! : 1
      const scale = this.#scale[s]! * Math.abs(weight)
      tally.add(() => `nonzero ${e}`, C[e]!, this.#want[s]! * weight, scale, bound * scale)
    }
    for (let e = 0; e < this.#count && tally.problem === ''; e++)
      if (Number.isNaN(C[e])) tally.problem = `nonzero ${e} is not written`
    return tally.verdict
  }
}
