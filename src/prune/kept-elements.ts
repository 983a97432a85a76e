/** Converts the kept elements of a layer to a sparse tensor. */
import type { CoordTensor } from '../storage/tensor.ts'
import { checkLength, checkMask } from './layers.ts'
import type { LayerShape, Mask } from './types.ts'

/**
 * The kept elements in row order, with their weights or as a pattern. Kept elements of weight 0 stay elements, although a
 * dense tensor could not distinguish them from pruned ones.
 * @throws SptError `api/argument`, `prune/shape`, `prune/mask`
 */
export function keptElements(
  mask: Mask,
  { rows, cols, name = 'given' }: Pick<LayerShape, 'rows' | 'cols'> & { readonly name?: string },
  weights: Float32Array | null = null,
): CoordTensor {
  const shape = { name, rows, cols }
  checkMask(mask, shape)
  if (weights !== null) checkLength('weights', weights, Float32Array, shape)
  let n = 0
  for (let e = 0; e < mask.length; e++) n += mask[e]!
  const coords = [new Int32Array(n), new Int32Array(n)] as const
  const values = weights && new Float32Array(n)
  n = 0
  for (let e = 0; e < mask.length; e++) {
    if (mask[e] === 0) continue
    coords[0][n] = Math.floor(e / cols)
    coords[1][n] = e % cols
    if (values) values[n] = weights![e]!
    n++
  }
  return { kind: 'coords', shape: [rows, cols], coords, values, dtype: 'f32' }
}
