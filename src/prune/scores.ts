/** Importance scores of elements: |w|, or |g · w| if gradients of the loss are given (first-order Taylor). */
import { fail } from '../ast/diagnostic.ts'
import { checkLength } from './layers.ts'
import type { LayerShape, Layers, Mask, Normalise, PruneProgress, Scored } from './types.ts'

/** Bits of infinity, without its sign: those of a NaN are above. */
const INFINITE = 0x7f800000

interface Chosen {
  /** Indices of the layers to prune, ascending. */
  readonly layers: readonly number[]
  readonly limits: readonly number[]
  /** Masks of all layers: elements pruned earlier have score 0. */
  readonly after: readonly Mask[] | undefined
  readonly normalise: Normalise
  readonly onProgress: ((progress: PruneProgress) => void) | undefined
}

/** The memory of scores is shared by all layers. */
export function scored(of: Layers, { layers, limits, after, normalise, onProgress }: Chosen): Scored {
  const shapes = layers.map((k) => of.shapes[k]!)
  const room = new Float32Array(shapes.reduce((most, s) => Math.max(most, s.rows * s.cols), 0))
  return {
    shapes,
    limits,
    vectorScore: NORMS[normalise],
    async scores(k, pass) {
      const shape = shapes[k]!
      const layer = layers[k]!
      const out = room.subarray(0, shape.rows * shape.cols)
      magnitudes(await weightsOf(of, layer), out, shape)
      if (of.gradients) {
        const gradients = await of.gradients(layer)
        checkLength('gradients', gradients, Float32Array, shape)
        byGradients(gradients, out, shape)
      }
      const before = after?.[layer]
      if (before) for (let i = 0; i < out.length; i++) if (before[i] === 0) out[i] = 0
      onProgress?.({ pass, layer: shape.name, done: k + 1, of: shapes.length })
      return out
    },
  }
}

export async function weightsOf(of: Layers, layer: number): Promise<Float32Array> {
  const weights = await of.weights(layer)
  checkLength('weights', weights, Float32Array, of.shapes[layer]!)
  return weights
}

/** @throws SptError `prune/not-finite` */
function magnitudes(weights: Float32Array, out: Float32Array, shape: LayerShape): void {
  const from = bitsOf(weights)
  const to = bitsOf(out)
  for (let i = 0; i < to.length; i++) {
    const bits = from[i]! & 0x7fffffff
    if (bits >= INFINITE) refuseValue('weights', weights[i]!, i, shape)
    to[i] = bits
  }
}

/** @throws SptError `prune/not-finite`, also where a weight of 0 would hide it */
function byGradients(gradients: Float32Array, out: Float32Array, shape: LayerShape): void {
  for (let i = 0; i < out.length; i++) {
    const g = gradients[i]!
    if (!Number.isFinite(g)) refuseValue('gradients', g, i, shape)
    out[i] = Math.abs(g) * out[i]!
  }
}

/** Non-negative floats are ordered as their bits are. */
export const bitsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length)

function refuseValue(what: string, value: number, at: number, { name, cols }: LayerShape): never {
  fail({
    code: 'prune/not-finite',
    message: `${what} of layer ${name}: ${value} in row ${Math.floor(at / cols)}, column ${at % cols}`,
    expected: 'finite numbers',
    hint: 'exclude the layer, or mend it',
  })
}

/**
 * Norm of a vector of n elements, from the sum of their squares. ‖e‖₂ / n is the published norm; it ranks long vectors of
 * similar elements lower, by 1 / √n, which the root mean square does not.
 */
export const NORMS: Readonly<Record<Normalise, (squares: number, elements: number) => number>> = {
  root: (squares, n) => Math.sqrt(squares / n),
  length: (squares, n) => Math.sqrt(squares) / n,
}
