/**
 * What Y[i] = Σ A[g, i, j] · X[j] W[g] has to be, in float64: some rows element by element, and every row by its product with a
 * vector of signs, Y s = Σ A X (W s) (Freivalds, 1977).
 */
import { type Half, halves, widen } from './blocks.ts'
import { allowed, type Precision, Tally, type Verdict, WORK } from './expected.ts'
import { type Groups, pairsOf } from './groups.ts'
import { choose, fillNormal, signs } from './random.ts'

export type Type = 'f32' | Half

/** Rows of X are multiplied by matrices of `inputs` × `outputs`. */
export interface Layer {
  readonly inputs: number
  readonly outputs: number
  readonly type: Type
}

/** A dense factor: values as kernels take them. */
export type Values = Float32Array | Uint16Array

/** More random values than these are the same ones again. */
const DIFFERENT = 16_777_213

/** What `make` makes of at most `different` elements, again and again where there are to be more, so that no rows are the same. */
export function repeated<T extends Values>(
  count: number,
  make: (own: number) => T,
  different = DIFFERENT,
): T {
  const list = make(Math.min(count, different))
  if (list.length === count) return list
  const out = (list instanceof Float32Array ? new Float32Array(count) : new Uint16Array(count)) as T
  for (let at = 0; at < count; at += list.length)
    out.set(list.subarray(0, Math.min(list.length, count - at)), at)
  return out
}

/** Random normal values of a type; many are a list whose length is prime again and again. */
export const normalsOf = (type: Type, count: number, seed: number, different = DIFFERENT): Values =>
  repeated(
    count,
    (own): Values => (type === 'f32' ? fillNormal(new Float32Array(own), seed) : halves(own, seed, type)),
    different,
  )

const read = (values: Values, type: Type): Float32Array =>
  values instanceof Float32Array ? values : widen(values, type === 'bf16' ? 'bf16' : 'f16')

/** The matrices of all groups, with what projections need of them. */
export class Weights {
  readonly layer: Layer
  readonly values: Values
  /** W s, row by row of each matrix, and the norm of each matrix. */
  readonly sums: Float64Array
  readonly norms: Float64Array

  constructor(groups: number, layer: Layer, seed: number) {
    const { inputs, outputs, type } = layer
    this.layer = layer
    this.values = normalsOf(type, groups * inputs * outputs, seed)
    this.sums = new Float64Array(groups * inputs)
    this.norms = new Float64Array(groups)
    const s = signs(outputs)
    for (let g = 0; g < groups; g++) {
      const w = this.of(g)
      let square = 0
      for (let c = 0, at = 0; c < inputs; c++) {
        let sum = 0
        for (let o = 0; o < outputs; o++, at++) {
          sum += s[o]! * w[at]!
          square += w[at]! * w[at]!
        }
        this.sums[g * inputs + c] = sum
      }
      this.norms[g] = Math.sqrt(square)
    }
  }

  /** The matrix of a group. */
  of(group: number): Float32Array {
    const size = this.layer.inputs * this.layer.outputs
    return read(this.values.subarray(group * size, (group + 1) * size), this.layer.type)
  }
}

interface Row {
  readonly row: number
  readonly want: Float64Array
  readonly scale: Float64Array
}

export class ExpectedGroups {
  readonly #outputs: number
  readonly #rows: readonly Row[]
  /** By row: how many products are added, their projection, and the magnitude of that. */
  readonly #products: Int32Array
  readonly #projected: Float64Array
  readonly #scale: Float64Array

  constructor(G: Groups, X: Values, weights: Weights) {
    const { inputs, outputs, type } = weights.layer
    const x = read(X, type)
    const [groups, rows, columns] = G.coords
    this.#outputs = outputs
    this.#products = new Int32Array(G.rows)
    this.#projected = new Float64Array(G.rows)
    this.#scale = new Float64Array(G.rows)
    for (let e = 0; e < pairsOf(G); e++) {
      const [g, i, j, a] = [groups[e]!, rows[e]!, columns[e]!, G.values[e]!]
      let [sum, square] = [0, 0]
      for (let c = 0, p = j * inputs, q = g * inputs; c < inputs; c++, p++, q++) {
        sum += x[p]! * weights.sums[q]!
        square += x[p]! * x[p]!
      }
      this.#products[i]! += inputs
      this.#projected[i]! += a * sum
      this.#scale[i]! += Math.abs(a) * Math.sqrt(square) * weights.norms[g]!
    }
    this.#rows = sampledRows(G, x, weights)
  }

  get checked(): string {
    return `${this.#rows.length} rows by element, all ${this.#products.length} by projection`
  }

  /** Rows of `outputs` values. */
  check(Y: Float32Array, p: Precision): Verdict {
    const width = this.#outputs
    const tally = new Tally()
    if (Y.length !== this.#products.length * width) tally.problem = `${Y.length} elements are too few or many`
    for (const { row, want, scale } of this.#rows) {
      const bound = allowed(this.#products[row]!, p)
      for (let o = 0; o < width; o++) {
        const limit = bound * scale[o]! + p.output * Math.abs(want[o]!)
        tally.add(() => `element (${row}, ${o})`, Y[row * width + o]!, want[o]!, scale[o]!, limit)
      }
    }
    const s = signs(width)
    for (let r = 0, at = 0; r < this.#products.length; r++) {
      let sum = 0
      for (let o = 0; o < width; o++, at++) sum += s[o]! * Y[at]!
      const limit = 6 * (allowed(this.#products[r]!, p) + p.output) * this.#scale[r]!
      tally.add(() => `row ${r} times signs`, sum, this.#projected[r]!, this.#scale[r]!, limit)
    }
    return tally.verdict
  }
}

/** The row with the most pairs, the first, the last, and random ones, as many as the work allows. */
function sampledRows(G: Groups, x: Float32Array, weights: Weights): readonly Row[] {
  const { inputs, outputs } = weights.layer
  const [groups, rows, columns] = G.coords
  const pairs = Array.from({ length: G.rows }, (): number[] => [])
  rows.forEach((i, e) => void pairs[i]!.push(e))
  const longest = pairs.reduce((most, own, r) => (own.length > pairs[most]!.length ? r : most), 0)
  const candidates = [longest, 0, G.rows - 1, ...choose(Math.min(G.rows, 1024), G.rows, Date.now() & 0xffff)]
  const out = new Map<number, Row>()
  let work = 0
  for (const row of candidates) {
    if (out.has(row)) continue
    work += pairs[row]!.length * inputs * outputs
    if (work > WORK && out.size > 0) break
    const [want, scale] = [new Float64Array(outputs), new Float64Array(outputs)]
    for (const e of pairs[row]!) {
      const w = weights.of(groups[e]!)
      for (let c = 0, at = 0; c < inputs; c++) {
        const ax = G.values[e]! * x[columns[e]! * inputs + c]!
        for (let o = 0; o < outputs; o++, at++) {
          want[o]! += ax * w[at]!
          scale[o]! += Math.abs(ax * w[at]!)
        }
      }
    }
    out.set(row, { row, want, scale })
  }
  return [...out.values()]
}
