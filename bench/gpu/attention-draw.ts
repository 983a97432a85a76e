/** Attention whose pairs are drawn: blocks and columns of each head, or sequences of any length one after the other; all causal. */
import { allowed, PRECISION, type Precision, Tally, type Verdict } from './expected.ts'
import { choose, fillNormal } from './random.ts'

export interface AttentionShape {
  readonly tokens: number
  readonly heads: number
  readonly d: number
}

/** Which earlier tokens count. */
export interface Pairs {
  counts(head: number, query: number, key: number): boolean
  /** How many pairs of all heads. */
  readonly count: number
}

/** Blocks of the lower triangle and columns, of each head others; those of the diagonal are always there, so that no row is empty. */
export class BlocksAndColumns implements Pairs {
  readonly blocks: Int32Array
  readonly columns: Int32Array
  readonly count: number
  readonly #tokens: number
  readonly #b: number

  constructor({ tokens, heads }: AttentionShape, b: number, share: number, columns: number, seed: number) {
    const n = tokens / b
    this.#tokens = tokens
    this.#b = b
    this.blocks = new Int32Array(heads * n * n)
    this.columns = new Int32Array(heads * tokens)
    const below = (n * (n - 1)) / 2
    const drawn = Math.min(below, Math.max(0, Math.round(share * (below + n)) - n))
    let count = 0
    for (let h = 0; h < heads; h++) {
      const at = h * n * n
      for (let q = 0; q < n; q++) this.blocks[at + q * n + q] = 1
      // The k-th pair q > k' lies in row q = ⌊(1 + √(1 + 8 k)) / 2⌋ of the triangle.
      for (const k of choose(drawn, below, seed + 2 * h)) {
        const q = Math.floor((1 + Math.sqrt(1 + 8 * k)) / 2)
        this.blocks[at + q * n + (k - (q * (q - 1)) / 2)] = 1
      }
      for (const c of choose(Math.round(columns * tokens), tokens, seed + 2 * h + 1))
        this.columns[h * tokens + c] = 1
      for (let q = 0; q < n; q++) {
        count += (b * (b + 1)) / 2
        for (let k = 0; k < q; k++) {
          if (this.blocks[at + q * n + k] !== 0) count += b * b
          else for (let c = k * b; c < (k + 1) * b; c++) if (this.columns[h * tokens + c] !== 0) count += b
        }
      }
    }
    this.count = count
  }

  counts(h: number, q: number, k: number): boolean {
    const n = this.#tokens / this.#b
    const block = (h * n + Math.floor(q / this.#b)) * n + Math.floor(k / this.#b)
    return k <= q && (this.blocks[block] !== 0 || this.columns[h * this.#tokens + k] !== 0)
  }
}

/** Sequences of log-normal lengths that fill all tokens. */
export class Packed implements Pairs {
  readonly ends: Int32Array
  readonly count: number

  constructor({ tokens, heads }: AttentionShape, sequences: number, seed: number) {
    const parts = fillNormal(new Float32Array(sequences), seed).map((x) => Math.exp(x))
    const total = parts.reduce((a, b) => a + b, 0)
    let sum = 0
    this.ends = Int32Array.from(parts, (x) => {
      sum += x
      return Math.round((tokens * sum) / total)
    })
    this.ends[sequences - 1] = tokens
    let count = 0
    this.ends.forEach((end, s) => {
      const length = end - (s === 0 ? 0 : this.ends[s - 1]!)
      count += (length * (length + 1)) / 2
    })
    this.count = heads * count
  }

  counts(_: number, q: number, k: number): boolean {
    return k <= q && !this.ends.some((end) => k < end && end <= q)
  }
}

/** Q, K and V: tokens × heads × d. */
export interface Operands {
  readonly Q: Float32Array
  readonly K: Float32Array
  readonly V: Float32Array
}

const UNIT = 2 ** -24
/** Of an exponential in float32, for each unit of its argument. */
const EXPONENTIAL = 2 ** -21
/** The least weight that halves tell from 0, halved. */
const LEAST = 2 ** -25

/** Softmax of the scores of some tokens in float64, all heads; of the others all values have to be numbers. */
export class ExpectedAttention {
  readonly #shape: AttentionShape
  readonly #pairs: Pairs
  readonly #of: Operands
  readonly #sampled: Int32Array

  constructor(shape: AttentionShape, pairs: Pairs, of: Operands, sampled: number) {
    this.#shape = shape
    this.#pairs = pairs
    this.#of = of
    const { tokens } = shape
    this.#sampled = Int32Array.from(
      new Set([0, tokens - 1, ...choose(Math.min(sampled, tokens), tokens, Date.now() & 0xffff)]),
    )
  }

  get checked(): string {
    return `${this.#sampled.length} of ${this.#shape.tokens} tokens by element, the rest for being numbers`
  }

  check(O: Float32Array, p: Precision): Verdict {
    const { tokens, heads, d } = this.#shape
    const tally = new Tally()
    if (O.length !== tokens * heads * d) tally.problem = `${O.length} elements are too few or many`
    for (const q of this.#sampled) for (let h = 0; h < heads; h++) this.#row(tally, O, p, q, h)
    tally.whole(O)
    return tally.verdict
  }

  #row(tally: Tally, O: Float32Array, p: Precision, q: number, h: number): void {
    const { heads, d } = this.#shape
    const { Q, K, V } = this.#of
    const keys = Array.from({ length: q + 1 }, (_, k) => k).filter((k) => this.#pairs.counts(h, q, k))
    let off = 0
    const scores = keys.map((k) => {
      let [sum, all] = [0, 0]
      for (let x = 0; x < d; x++) {
        const term = Q[(q * heads + h) * d + x]! * K[(k * heads + h) * d + x]!
        sum += term
        all += Math.abs(term)
      }
      off = Math.max(off, (all * allowed(d, p)) / Math.sqrt(d))
      return sum / Math.sqrt(d)
    })
    const [most, low] = [Math.max(...scores), Math.min(...scores)]
    const weights = scores.map((s) => Math.exp(s - most))
    const total = weights.reduce((a, b) => a + b, 0)
    // Weights are stored in the type of the result where they are stored, and what a quotient is off by is twice what they are.
    const error =
      2 * (off + EXPONENTIAL * (2 + most - low)) + UNIT * (8 + 2 * Math.sqrt(keys.length)) + p.output
    for (let x = 0; x < d; x++) {
      let [sum, scale, all] = [0, 0, 0]
      for (const [n, k] of keys.entries()) {
        const v = V[(k * heads + h) * d + x]!
        sum += (weights[n]! / total) * v
        scale += (weights[n]! / total) * Math.abs(v)
        all += Math.abs(v) / total
      }
      const bound = error * scale + p.output * Math.abs(sum) + (p === PRECISION.f16 ? LEAST * all : 0)
      tally.add(() => `element (${q}, ${h}, ${x})`, O[(q * heads + h) * d + x]!, sum, scale, bound)
    }
  }
}
