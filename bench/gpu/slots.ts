/** Where a format puts the elements of a tensor, read off a conversion. */

import { convertForKernel } from '../../src/device.ts'
import type { StoredTensor } from '../../src/node.ts'
import { inputs } from './declared.ts'
import type { OurDevice, Ready } from './ours.ts'

/**
 * Which element of the source lies in each slot of each part, −1 for padding: the matrix with its elements' numbers for
 * values, in the same format. Numbers are exact in two halves.
 */
export async function slotsOf(
  on: OurDevice,
  ready: Ready,
  tensor: StoredTensor,
  count: number,
): Promise<readonly Int32Array[]> {
  const high = new Float32Array(count)
  const low = new Float32Array(count)
  for (let e = 0; e < count; e++) {
    high[e] = 1 + (e >>> 12)
    low[e] = e & 4095
  }
  const [above, below] = [await download(on, ready, tensor, high), await download(on, ready, tensor, low)]
  return above.map((h, k) => {
    const l = below[k] ?? h
    const out = new Int32Array(h.length)
    for (let s = 0; s < h.length; s++) out[s] = h[s] === 0 ? -1 : (h[s]! - 1) * 4096 + l[s]!
    return out
  })
}

async function download(
  on: OurDevice,
  ready: Ready,
  tensor: StoredTensor,
  values: Float32Array,
): Promise<readonly Float32Array[]> {
  const { source } = ready
  const from = await on.upload({ ...tensor, values }, source)
  const parts = await convertForKernel(ready.compiled, inputs(source)[0]!.name, from)
  from.free()
  try {
    return (await parts.download()).parts.map((p) => {
      if (!(p.values instanceof Float32Array)) throw new Error('element numbers are f32')
      return p.values
    })
  } finally {
    parts.free()
  }
}
