/** Layers of the suite `tile-wise`: sizes, weights, what the pruner leaves of them, activations, and our kernels on them. */
import { type Dtype, dense, type ValueArray } from '../../src/node.ts'
import { layersFromValues, type Mask, type Pattern, prune, unionMasks } from '../../src/prune.ts'
import { halves, widen } from './blocks.ts'
import type { Candidate } from './candidates.ts'
import { bindFirst } from './contestants.ts'
import { inputs, structured } from './declared.ts'
import { ExpectedProduct } from './expected.ts'
import { normalsOf } from './expected-groups.ts'
import type { Formats } from './formats.ts'
import type { Csr } from './matrix.ts'
import { LAYER_SIZE } from './named.ts'
import type { OurDevice, OurRun } from './ours.ts'
import { fillNormal } from './random.ts'
import type { LayersAsked, Options } from './session.ts'

export interface LayerSize {
  readonly outputs: number
  readonly inputs: number
  /** Columns of the activations: tokens. */
  readonly columns: number
}

/** Those of an encoder of BERT's base size, with 100 sequences of 128 tokens. */
const COLUMNS = 12_800
const USUAL = ['768x768', '3072x768', '768x3072']

/** Without anything asked. */
const ASKED = { sparsities: [0.75, 0.875], breakEven: false, on: 'cuda' } as const

export function layersAsked({ layers, quick }: Options): Required<LayersAsked> {
  const asked = { ...ASKED, ...layers }
  return quick ? { ...asked, sparsities: asked.sparsities.slice(0, 1) } : asked
}

/** Sizes that were named, or the usual ones. */
export function layerSizes(asked: readonly string[], quick: boolean): readonly LayerSize[] {
  const named = asked.filter((name) => LAYER_SIZE.test(name))
  return (named.length > 0 ? named : quick ? USUAL.slice(0, 1) : USUAL).map((name) => {
    const [, outputs, inputs, columns = COLUMNS] = LAYER_SIZE.exec(name)!
    return { outputs: Number(outputs), inputs: Number(inputs), columns: Number(columns) }
  })
}

/** Of the masks: outputs in a tile. */
export const GRANULARITY = 128

export const percent = (sparsity: number): string => `${Number((100 * sparsity).toFixed(1))} %`
export const sizeName = ({ outputs, inputs, columns }: LayerSize): string =>
  `${outputs} × ${inputs}, M = ${columns}`

/** What is left of the weights of a layer, by rows. */
export interface Kept {
  /** With values in f32, which are exact. */
  readonly csr: Csr
  /** The same values as f16. */
  readonly bits: Uint16Array
  /** Rows and columns of what is in no tile's rest: of all, where the pattern has none. */
  held(): readonly [Int32Array, Int32Array]
}

/** Weights [outputs, inputs] and a bias, normal ones. */
export class Layer {
  readonly size: LayerSize
  readonly bits: Uint16Array
  readonly values: Float32Array
  readonly bias: Float32Array

  constructor(size: LayerSize, seed: number) {
    this.size = size
    this.bits = halves(size.outputs * size.inputs, seed)
    this.values = widen(this.bits)
    this.bias = fillNormal(new Float32Array(size.outputs), seed + 1)
  }

  /** By the pruner, with this layer alone. @throws SptError `prune/…` where the pattern cannot have that sparsity */
  async pruned(pattern: Pattern, sparsity: number): Promise<Kept> {
    const { outputs: rows, inputs: cols } = this.size
    const layers = layersFromValues([{ name: 'layer', rows, cols, weights: this.values }])
    const pruned = await prune(layers, { pattern, sparsity })
    return this.#only(unionMasks(pruned)[0]!, pruned.masks[0]!)
  }

  /** All of them. */
  whole(): Kept {
    return this.#only(new Uint8Array(this.bits.length).fill(1))
  }

  #only(mask: Mask, regular: Mask = mask): Kept {
    const { outputs: rows, inputs: columns } = this.size
    const count = mask.reduce((n, kept) => n + kept, 0)
    const [indptr, indices, bits] = [new Int32Array(rows + 1), new Int32Array(count), new Uint16Array(count)]
    let at = 0
    for (let r = 0, e = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++, e++)
        if (mask[e] === 1) {
          indices[at] = c
          bits[at++] = this.bits[e]!
        }
      indptr[r + 1] = at
    }
    const held = (): [Int32Array, Int32Array] => {
      const at = Int32Array.from(regular.keys()).filter((e) => regular[e] === 1)
      return [at.map((e) => Math.floor(e / columns)), at.map((e) => e % columns)]
    }
    return { csr: { name: 'layer', rows, columns, indptr, indices, values: widen(bits) }, bits, held }
  }
}

/** Activations are a list of as many normal values again and again. */
const DIFFERENT = 1_048_573

/** Activations [inputs, columns]. */
export class Activations {
  readonly bits: Uint16Array
  /** In f32, with a row of ones behind them, which a bias is multiplied by. */
  readonly values: Float32Array

  constructor({ inputs, columns }: LayerSize, seed: number) {
    this.bits = normalsOf('f16', inputs * columns, seed, DIFFERENT) as Uint16Array
    this.values = new Float32Array((inputs + 1) * columns).fill(1, inputs * columns)
    this.values.set(widen(this.bits))
  }
}

/** W X, with the bias as a column more for kernels that add it. */
export class ExpectedLayer {
  readonly #csr: Csr
  readonly #X: Activations
  readonly #layer: Layer
  readonly #known = new Map<boolean, ExpectedProduct>()

  constructor({ csr }: Kept, X: Activations, layer: Layer) {
    this.#csr = csr
    this.#X = X
    this.#layer = layer
  }

  of(isBiased: boolean): ExpectedProduct {
    let known = this.#known.get(isBiased)
    if (!known) {
      const A = isBiased ? withColumn(this.#csr, this.#layer.bias) : this.#csr
      known = new ExpectedProduct(A, this.#X.values, this.#layer.size.columns)
      this.#known.set(isBiased, known)
    }
    return known
  }

  get checked(): string {
    return [...this.#known.values()][0]?.checked ?? 'nothing'
  }
}

function withColumn(A: Csr, last: Float32Array): Csr {
  const indptr = A.indptr.map((at, r) => at + r)
  const indices = new Int32Array(A.indices.length + A.rows)
  const values = new Float32Array(indices.length)
  for (let r = 0; r < A.rows; r++) {
    const [from, to] = [A.indptr[r]!, A.indptr[r + 1]!]
    indices.set(A.indices.subarray(from, to), indptr[r])
    values.set(A.values.subarray(from, to), indptr[r])
    indices[indptr[r + 1]! - 1] = A.columns
    values[indptr[r + 1]! - 1] = last[r]!
  }
  return { ...A, columns: A.columns + 1, indptr, indices, values }
}

/**
 * One of ours on a layer: weights, activations, and the bias where it takes one, in the types that it declares. `low` is
 * what results are at least, where it takes that: -Infinity, or 0 for rectified ones.
 */
export async function bindLayer(
  on: OurDevice,
  candidate: Candidate,
  formats: Formats,
  { csr, bits, held }: Kept,
  X: Uint16Array,
  bias: Float32Array,
  low = -Infinity,
): Promise<OurRun> {
  const { source } = await on.ready(candidate)
  const [w, x, b] = inputs(source)
  if (!w || !x) throw new Error(`${source.name} has too few inputs`)
  const { rows, columns } = csr
  const others = [dense([columns, X.length / columns], ...valuesAs(x.dtype, X))]
  if (b) others.push(dense([rows], bias, 'f32'))
  const [values, dtype] = valuesAs(w.dtype, bits)
  const scalars = source.params.filter((p) => p.kind === 'scalar').map((p) => [p.name, low] as const)
  return bindFirst(
    on,
    candidate,
    formats,
    (ready) => structured(ready.source, [rows, columns], csr, values, dtype),
    others,
    Object.fromEntries(scalars),
    held,
  )
}

/** f16 bits as the type that a kernel declares. */
export function valuesAs(dtype: Dtype, bits: Uint16Array): [ValueArray, Dtype] {
  if (dtype === 'f16') return [bits, 'f16']
  if (dtype === 'f32') return [widen(bits), 'f32']
  throw new Error(`operands of ${dtype} are not measured here`)
}
