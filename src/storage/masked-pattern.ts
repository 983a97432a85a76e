/** Patterns of masks. */
import type { CoordTensor } from './tensor.ts'

/** The elements of a matrix for which `mask` has 1, not 0: a pattern in row order. */
export function maskedPattern(mask: Uint8Array, shape: readonly [rows: number, cols: number]): CoordTensor {
  let count = 0
  for (let e = 0; e < mask.length; e++) count += mask[e]!
  const rows = new Int32Array(count)
  const columns = new Int32Array(count)
  count = 0
  for (let e = 0; e < mask.length; e++)
    if (mask[e] === 1) {
      rows[count] = Math.floor(e / shape[1])
      columns[count++] = e % shape[1]
    }
  return { kind: 'coords', shape, coords: [rows, columns], values: null, dtype: 'f32' }
}
