/**
 * Activations and weights of a rectified layer whose hidden elements are zero where a pattern says so: some inputs are kept for it,
 * and decide for or against an element by twelve times what the others, which are normal, are in the mean.
 */
import { toF16 } from '../../src/ir/values/half.ts'
import { repeated } from './expected-groups.ts'
import { fillNormal } from './random.ts'
import { chosenTiles, ELEMENT, elementsOf, type Tile, tileName } from './tiles.ts'

export interface RectifiedShape {
  readonly tokens: number
  readonly inputs: number
  readonly hidden: number
  readonly outputs: number
}

/** What the first inputs are: of a token in X, of a neuron in U, by rows of `kept` values as f16 bits. */
export interface Decided {
  readonly kept: number
  readonly X: Uint16Array
  readonly U: Uint16Array
  /** Elements of H that are not zero; of single ones as many as are expected. */
  readonly count: number
}

/** Their product is twelve. */
const ON_X = 4
const ON_U = 3
/** Of the other inputs of U times those of X, which are a thousand or more: the sum has variance 1. */
const scaleOf = (inputs: number): number => 1 / Math.sqrt(inputs)

/** @param held share of tiles (tokens × neurons) of H that hold anything, at random; nothing else does */
export function decided(shape: RectifiedShape, tile: Tile, held: number, seed: number): Decided {
  if (tileName(tile) === tileName(ELEMENT)) return single(shape, held)
  const [high, wide] = tile
  const { tokens, hidden, inputs } = shape
  const [down, across] = [Math.ceil(tokens / high), Math.ceil(hidden / wide)]
  const chosen = chosenTiles([tokens, hidden], tile, held, seed)
  const on = new Uint8Array(down * across)
  for (const { top, left } of chosen) on[(top / high) * across + left / wide] = 1
  // An input for each row of tiles that tokens are of, or each column that neurons are of: whichever are fewer.
  const byTokens = down <= across
  const kept = Math.min(down, across)
  if (kept > inputs) throw new Error(`${inputs} inputs are too few for ${kept} rows of tiles`)
  const [X, U] = [new Uint16Array(tokens * kept), new Uint16Array(hidden * kept)]
  const sign = (row: number, column: number): number => (on[row * across + column] === 1 ? 1 : -1)
  for (let i = 0; i < tokens; i++) {
    const row = Math.floor(i / high)
    if (byTokens) X[i * kept + row] = toF16(ON_X)
    else for (let c = 0; c < kept; c++) X[i * kept + c] = toF16(ON_X * sign(row, c))
  }
  for (let q = 0; q < hidden; q++) {
    const column = Math.floor(q / wide)
    if (!byTokens) U[q * kept + column] = toF16(ON_U)
    else for (let r = 0; r < kept; r++) U[q * kept + r] = toF16(ON_U * sign(r, column))
  }
  const count = chosen.reduce((n, t) => n + elementsOf(t), 0)
  return { kept, X, U, count }
}

/** Single elements: those where a normal value is above what only so many are above. */
function single({ tokens, hidden }: RectifiedShape, held: number): Decided {
  const X = new Uint16Array(tokens).fill(toF16(ON_X))
  const U = new Uint16Array(hidden).fill(toF16(-quantile(held) / ON_X))
  return { kept: 1, X, U, count: Math.round(held * tokens * hidden) }
}

/** What a share of normal values is above, by halving. */
export function quantile(above: number): number {
  let [low, high] = [-8, 8]
  for (let k = 0; k < 50; k++) {
    const middle = (low + high) / 2
    if (tail(middle) > above) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/** The share of normal values above t: Simpson's rule up to where nothing is. */
function tail(t: number): number {
  const [end, steps] = [9, 400]
  const h = (end - t) / steps
  let sum = 0
  for (let k = 0; k <= steps; k++) {
    const weight = k === 0 || k === steps ? 1 : k % 2 === 1 ? 4 : 2
    sum += weight * Math.exp(-((t + k * h) ** 2) / 2)
  }
  return ((h / 3) * sum) / Math.sqrt(2 * Math.PI)
}

/** Normal values as f16 bits, the same ones again and again where they are many. */
export const normalBits = (count: number, factor: number, seed: number): Uint16Array =>
  repeated(count, (own) =>
    Uint16Array.from(fillNormal(new Float32Array(own), seed), (x) => toF16(factor * x)),
  )

/** X [tokens, inputs], U [hidden, inputs] and D [hidden, outputs] without a pattern. */
export class RectifiedLayer {
  readonly shape: RectifiedShape
  readonly X: Uint16Array
  readonly U: Uint16Array
  readonly D: Uint16Array
  /** Puts back what the pattern took the place of. */
  #before: (() => void) | undefined

  constructor(shape: RectifiedShape, seed: number) {
    const { tokens, inputs, hidden, outputs } = shape
    this.shape = shape
    this.X = normalBits(tokens * inputs, 1, seed)
    this.U = normalBits(hidden * inputs, scaleOf(inputs), seed + 1)
    this.D = normalBits(hidden * outputs, 1, seed + 2)
  }

  /** With a pattern instead of the one before. */
  decide({ kept, X, U }: Decided): void {
    const { inputs } = this.shape
    this.#before?.()
    const [x, u] = [firstOf(this.X, inputs, kept), firstOf(this.U, inputs, kept)]
    this.#before = () => {
      putFirst(this.X, inputs, kept, x)
      putFirst(this.U, inputs, kept, u)
    }
    putFirst(this.X, inputs, kept, X)
    putFirst(this.U, inputs, kept, U)
  }
}

/** The first `kept` elements of each row. */
function firstOf(rows: Uint16Array, width: number, kept: number): Uint16Array {
  const out = new Uint16Array((rows.length / width) * kept)
  for (let at = 0, to = 0; at < rows.length; at += width, to += kept)
    out.set(rows.subarray(at, at + kept), to)
  return out
}

function putFirst(rows: Uint16Array, width: number, kept: number, own: Uint16Array): void {
  for (let at = 0, from = 0; at < rows.length; at += width, from += kept)
    rows.set(own.subarray(from, from + kept), at)
}
