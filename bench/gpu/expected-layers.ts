/**
 * What two layers with a rectification between them have to be, in float64, row by row: Σ g · max(x U, low) D over the matrices that a
 * row goes through. What is hidden is stored in f16, and what that is off by goes through the second layer.
 */
import { allowed, PRECISION, type Precision, Tally, type Verdict } from './expected.ts'

export interface LayerShape {
  readonly inputs: number
  readonly hidden: number
  readonly outputs: number
  /** Whether U is [hidden, inputs]. */
  readonly isTurned?: boolean
}

/** U [inputs, hidden] and D [hidden, outputs] by rows, and what their result is multiplied by. */
export interface Term {
  readonly gate: number
  readonly U: Float32Array
  readonly D: Float32Array
}

/** By a float32 exponential and a quotient. */
const GATE = 2 ** -18

interface Row {
  readonly row: number
  readonly want: Float64Array
  readonly scale: Float64Array
  /** Before the result is stored. */
  readonly bound: Float64Array
}

export class ExpectedLayers {
  readonly #shape: LayerShape
  readonly #rows: number
  readonly #sampled: Int32Array
  readonly #inputOf: (row: number) => Float32Array
  readonly #termsOf: (row: number) => readonly Term[]
  readonly #low: number
  #known: readonly Row[] | undefined

  /**
   * @param sampled rows that are computed; of the others all values have to be numbers
   * @param low what is hidden is at least that
   */
  constructor(
    shape: LayerShape,
    rows: number,
    sampled: Int32Array,
    inputOf: (row: number) => Float32Array,
    termsOf: (row: number) => readonly Term[],
    low = 0,
  ) {
    this.#shape = shape
    this.#rows = rows
    this.#sampled = sampled
    this.#inputOf = inputOf
    this.#termsOf = termsOf
    this.#low = low
  }

  get checked(): string {
    return `${this.#sampled.length} of ${this.#rows} rows by element, the rest for being numbers`
  }

  /** Rows of `outputs` values. */
  check(Y: Float32Array, p: Precision): Verdict {
    const width = this.#shape.outputs
    const tally = new Tally()
    if (Y.length !== this.#rows * width) tally.problem = `${Y.length} elements are too few or many`
    this.#known ??= Array.from(this.#sampled, (row) => this.#row(row))
    for (const { row, want, scale, bound } of this.#known)
      for (let o = 0; o < width; o++) {
        const limit = bound[o]! + p.output * Math.abs(want[o]!)
        tally.add(() => `element (${row}, ${o})`, Y[row * width + o]!, want[o]!, scale[o]!, limit)
      }
    tally.whole(Y)
    return tally.verdict
  }

  #row(row: number): Row {
    const { outputs } = this.#shape
    const [want, scale, bound] = [0, 0, 0].map(() => new Float64Array(outputs)) as [
      Float64Array,
      Float64Array,
      Float64Array,
    ]
    const x = Float64Array.from(this.#inputOf(row))
    for (const { gate, U, D } of this.#termsOf(row)) {
      const { hidden, off } = this.#hidden(x, U)
      const z = product(hidden, D, outputs)
      const through = product(off, D, outputs).scale
      const rounding = allowed(hidden.length, PRECISION.f16)
      for (let o = 0; o < outputs; o++) {
        want[o]! += gate * z.want[o]!
        scale[o]! += gate * z.scale[o]!
        bound[o]! += gate * (rounding * z.scale[o]! + through[o]! + GATE * Math.abs(z.want[o]!))
      }
    }
    return { row, want, scale, bound }
  }

  /** What is hidden, and what it may be off by: nothing where a sum is below `low` for certain. */
  #hidden(x: Float64Array, U: Float32Array): { readonly hidden: Float64Array; readonly off: Float64Array } {
    const { hidden: count, isTurned = false } = this.#shape
    const { want, scale } = isTurned ? dots(x, U, count) : product(x, U, count)
    const [low, rounding] = [this.#low, allowed(x.length, PRECISION.f16)]
    const off = want.map((v, q) => {
      const [e, h] = [rounding * scale[q]!, Math.max(low, v)]
      const sum = Math.max(Math.max(low, v + e) - h, h - Math.max(low, v - e))
      return sum + PRECISION.f16.output * Math.abs(h)
    })
    return { hidden: want.map((v) => Math.max(low, v)), off }
  }
}

export interface Sums {
  readonly want: Float64Array
  readonly scale: Float64Array
}

/** M x, and the sums of magnitudes. */
export function dots(x: Float64Array, M: Float32Array, rows: number): Sums {
  const [want, scale] = [new Float64Array(rows), new Float64Array(rows)]
  for (let r = 0, at = 0; r < rows; r++) {
    let [sum, all] = [0, 0]
    for (let p = 0; p < x.length; p++, at++) {
      const term = x[p]! * M[at]!
      sum += term
      all += Math.abs(term)
    }
    want[r] = sum
    scale[r] = all
  }
  return { want, scale }
}

/** x M, and the sums of magnitudes. */
export function product(x: Float64Array, M: Float32Array, columns: number): Sums {
  const [want, scale] = [new Float64Array(columns), new Float64Array(columns)]
  for (let p = 0, at = 0; p < x.length; p++, at += columns) {
    const a = x[p]!
    if (a === 0) continue
    for (let q = 0; q < columns; q++) {
      const term = a * M[at + q]!
      want[q]! += term
      scale[q]! += Math.abs(term)
    }
  }
  return { want, scale }
}
