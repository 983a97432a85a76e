/** Importance scores of elements: |w|, or |g · w| if gradients of the loss are given (first-order Taylor). */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { checkLength } from './layers.ts'
import type { LayerScores, LayerShape, Layers, Mask, Normalise, Pattern, PruneProgress } from './types.ts'

/** Bits of infinity without the sign; bits of NaN are greater. */
const INFINITE = 0x7f800000

/** The options of `prune`, checked. */
export interface CheckedOptions {
  readonly pattern: Pattern
  readonly sparsity: number
  /** Indices of the layers to prune, ascending, and the limit of each. */
  readonly layers: readonly number[]
  readonly limits: readonly number[]
  /** Masks of all layers: elements pruned earlier have score 0. */
  readonly previousMasks: readonly Mask[] | undefined
  /** Sparsity of the element-wise pruning whose masks steer the scores. */
  readonly apriori: number | undefined
  readonly normalise: Normalise
  readonly warnBelow: number
  readonly onProgress: ((progress: PruneProgress) => void) | undefined
}

/** Scores of the layers to prune, computed in one buffer that all layers share. */
export function scoreLayers(
  source: Layers,
  { layers, limits, previousMasks, normalise, onProgress }: CheckedOptions,
): LayerScores {
  const shapes = layers.map((k) => source.shapes[k]!)
  const buffer = new Float32Array(shapes.reduce((max, s) => Math.max(max, s.rows * s.cols), 0))
  return {
    shapes,
    limits,
    vectorScore: NORMS[normalise],
    async scores(k, pass) {
      const shape = shapes[k]!
      const layer = layers[k]!
      const out = buffer.subarray(0, shape.rows * shape.cols)
      magnitudes(await weightsOf(source, layer), out, shape)
      if (source.gradients) {
        const gradients = await source.gradients(layer)
        checkLength('gradients', gradients, Float32Array, shape)
        multiplyGradients(gradients, out, shape)
      }
      const earlier = previousMasks?.[layer]
      if (earlier) for (let i = 0; i < out.length; i++) if (earlier[i] === 0) out[i] = 0
      onProgress?.({ pass, layer: shape.name, done: k + 1, of: shapes.length })
      return out
    },
  }
}

export async function weightsOf(source: Layers, layer: number): Promise<Float32Array> {
  const weights = await source.weights(layer)
  checkLength('weights', weights, Float32Array, source.shapes[layer]!)
  return weights
}

/** @throws SptError `prune/not-finite` */
function magnitudes(weights: Float32Array, out: Float32Array, shape: LayerShape): void {
  const sourceBits = bitsOf(weights)
  const targetBits = bitsOf(out)
  for (let i = 0; i < targetBits.length; i++) {
    const bits = sourceBits[i]! & 0x7fffffff
    if (bits >= INFINITE) rejectValue('weights', weights[i]!, i, shape)
    targetBits[i] = bits
  }
}

/** Multiplies scores by |gradients|. @throws SptError `prune/not-finite`, also for weights of 0 */
function multiplyGradients(gradients: Float32Array, out: Float32Array, shape: LayerShape): void {
  for (let i = 0; i < out.length; i++) {
    const g = gradients[i]!
    if (!Number.isFinite(g)) rejectValue('gradients', g, i, shape)
    out[i] = Math.abs(g) * out[i]!
  }
}

/** Bits of floats; for non-negative floats, the order of bits equals the order of values. */
export const bitsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length)

function rejectValue(subject: string, value: number, index: number, { name, cols }: LayerShape): never {
  failWith(
    'prune/not-finite',
    `${subject} of layer ${name}: ${value} in row ${Math.floor(index / cols)}, column ${index % cols}`,
    { expected: 'finite numbers', hint: 'exclude or repair the layer' },
  )
}

/**
 * Norm of a vector of n elements, from the sum of their squares. ‖e‖₂ / n is the published norm; it ranks long vectors of
 * similar elements lower, by 1 / √n, which the root mean square does not.
 */
export const NORMS: Readonly<Record<Normalise, (squares: number, elements: number) => number>> = {
  root: (squares, n) => Math.sqrt(squares / n),
  length: (squares, n) => Math.sqrt(squares) / n,
}
