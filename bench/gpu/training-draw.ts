/**
 * Operands of a training step under a mask of blocks at random, and what the step has to give in float64: some tokens' outputs and
 * their gradients, and some outputs' weights, each of which needs errors of all tokens.
 */
import { toF16 } from '../../src/ir/values/half.ts'
import { widen } from './blocks.ts'
import { allowed, PRECISION, Tally, type Verdict } from './expected.ts'
import { dots, product, type Sums } from './expected-layers.ts'
import { choose } from './random.ts'
import { normalBits } from './rectified-draw.ts'
import { chosenTiles, elementsOf, type Tile } from './tiles.ts'

export interface TrainingShape {
  readonly tokens: number
  readonly inputs: number
  readonly outputs: number
}

/** Below 2 over the greatest eigenvalue of X Xᵀ, so that weights stay as large as they are however often a run is repeated. */
const rateOf = ({ tokens, inputs }: TrainingShape): number =>
  2 ** -Math.ceil(Math.log2(2 * (tokens + inputs)))

/** X [tokens, inputs], T [tokens, outputs], W [outputs, inputs] without a mask. */
export class TrainingStep {
  readonly shape: TrainingShape
  readonly rate: number
  readonly X: Uint16Array
  readonly T: Uint16Array
  readonly W: Float32Array
  readonly M: Uint16Array
  /** Elements that the mask holds. */
  count = 0

  constructor(shape: TrainingShape, seed: number) {
    const { tokens, inputs, outputs } = shape
    this.shape = shape
    this.rate = rateOf(shape)
    this.X = normalBits(tokens * inputs, 1, seed)
    this.T = normalBits(tokens * outputs, 1, seed + 1)
    // Not what f16 has.
    const scale = 1.0007 / Math.sqrt(inputs)
    this.W = widen(normalBits(outputs * inputs, 1, seed + 2)).map((w) => scale * w)
    this.M = new Uint16Array(outputs * inputs)
  }

  /** Has the mask hold a share of its blocks, at random. */
  hold(block: Tile, held: number, seed: number): void {
    const { inputs, outputs } = this.shape
    this.M.fill(0)
    this.count = 0
    for (const t of chosenTiles([outputs, inputs], block, held, seed)) {
      for (let o = t.top; o < t.bottom; o++) this.M.fill(ONE, o * inputs + t.left, o * inputs + t.right)
      this.count += elementsOf(t)
    }
  }
}

const ONE = toF16(1)

/** What a step writes. */
export interface StepResults {
  readonly Y: Float32Array
  readonly D: Float32Array
  readonly W: Float32Array
}

interface Row {
  readonly at: number
  readonly want: Float64Array
  readonly scale: Float64Array
  readonly bound: Float64Array
}

export class ExpectedStep {
  readonly #step: TrainingStep
  readonly #tokens: Int32Array
  readonly #outputs: Int32Array
  readonly #Y: Row[] = []
  readonly #D: Row[] = []
  readonly #W: Row[] = []

  /** @param sampled tokens and outputs that are computed; all other values have to be numbers */
  constructor(step: TrainingStep, sampled: number, seed: number) {
    const { tokens, outputs } = step.shape
    this.#step = step
    this.#tokens = choose(Math.min(sampled, tokens), tokens, seed)
    this.#outputs = choose(Math.min(sampled, outputs), outputs, seed + 1)
    this.#compute()
  }

  get checked(): string {
    return `${this.#tokens.length} tokens and ${this.#outputs.length} outputs by element, the rest for being numbers`
  }

  /** The rows that are computed, one after the other, rounded to f32. */
  get wanted(): StepResults {
    const flat = (rows: readonly Row[]): Float32Array =>
      Float32Array.from(rows.flatMap(({ want }) => [...want]))
    return { Y: flat(this.#Y), D: flat(this.#D), W: flat(this.#W) }
  }

  check({ Y, D, W }: StepResults): Verdict {
    const { inputs, outputs } = this.#step.shape
    const tally = new Tally()
    const rows = (name: string, got: Float32Array, width: number, of: readonly Row[]): void => {
      for (const { at, want, scale, bound } of of)
        for (let k = 0; k < width; k++)
          tally.add(() => `${name}(${at}, ${k})`, got[at * width + k]!, want[k]!, scale[k]!, bound[k]!)
      tally.whole(got, name)
    }
    rows('Y', Y, outputs, this.#Y)
    rows('D', D, inputs, this.#D)
    rows('W', W, inputs, this.#W)
    return tally.verdict
  }

  #compute(): void {
    const { shape, rate, W, M } = this.#step
    const { tokens, inputs, outputs } = shape
    const [X, T] = [widen(this.#step.X), widen(this.#step.T)]
    const V = widen(Uint16Array.from(W, (w, e) => (M[e] === 0 ? 0 : toF16(w))))
    const row = (all: Float32Array, width: number, at: number): Float64Array =>
      Float64Array.from(all.subarray(at * width, (at + 1) * width))
    for (const t of this.#tokens) {
      const y = dots(row(X, inputs, t), V, outputs)
      this.#Y.push({ at: t, ...y, bound: boundOf(y, inputs, y.want) })
      const e = errorOf(y, inputs, row(T, outputs, t))
      const d = product(e.want, V, inputs)
      this.#D.push({ at: t, ...d, bound: through(d, e.off, V, inputs, d.want) })
    }
    for (const o of this.#outputs) {
      const target = Float64Array.from({ length: tokens }, (_, t) => T[t * outputs + o]!)
      const e = errorOf(dots(row(V, inputs, o), X, tokens), inputs, target)
      const g = product(e.want, X, inputs)
      const bound = through(g, e.off, X, inputs)
      const weights = row(W, inputs, o)
      const held = M.subarray(o * inputs, (o + 1) * inputs)
      const want = weights.map((w, p) => (held[p] === 0 ? w : w - rate * g.want[p]!))
      this.#W.push({
        at: o,
        want,
        scale: weights.map((w, p) => Math.abs(w) + rate * g.scale[p]!),
        // What is not held stays, bit for bit.
        bound: bound.map((b, p) =>
          held[p] === 0 ? 0 : rate * b + 2 * F32 * (Math.abs(weights[p]!) + Math.abs(rate * g.want[p]!)),
        ),
      })
    }
  }
}

const { product: F32, output: F16 } = PRECISION.f16

/** Of sums of `length` products that are stored in f16. */
const boundOf = ({ scale }: Sums, length: number, stored: Float64Array): Float64Array =>
  scale.map((s, k) => allowed(length, PRECISION.f16) * s + F16 * Math.abs(stored[k]!))

/** Y − T, and what is stored of it may be off by; Y may have been rounded before, as by those who store it first. */
function errorOf(
  y: Sums,
  length: number,
  target: Float64Array,
): { readonly want: Float64Array; readonly off: Float64Array } {
  const want = y.want.map((v, k) => v - target[k]!)
  const off = boundOf(y, length, y.want).map((b, k) => b + F16 * Math.abs(want[k]!))
  return { want, off }
}

/** Of sums of products with factors that are off, stored in f16 where `stored` is given. */
function through(
  sums: Sums,
  off: Float64Array,
  M: Float32Array,
  width: number,
  stored?: Float64Array,
): Float64Array {
  const passed = product(off, M, width).scale
  return sums.scale.map(
    (s, k) => allowed(off.length, PRECISION.f16) * s + passed[k]! + (stored ? F16 * Math.abs(stored[k]!) : 0),
  )
}
