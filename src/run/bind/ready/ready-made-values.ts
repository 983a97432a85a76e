/** Ready-made values of a buffer, in storage order. */

import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { MASK_BITS, unpackFields } from '../../../ir/values/packed-fields.ts'
import type { Storage } from '../../../storage/storage.ts'
import type { ValueArray } from '../../../storage/tensor.ts'
import { convertValues, filledArray } from '../../../storage/values.ts'
import { maskOver } from '../sources/caller-tensors.ts'

interface Place {
  readonly kernel: Kernel1
  readonly b: Buffer1
  readonly storage: Storage
  /** Masks and other arrays, by name. */
  readonly masks: ReadonlyMap<string, ValueArray>
}

/**
 * Converts values to the buffer's type. With a mask, padding is set to the fill value, because kernels may compute with it. Throws
 * SptError `bind/value-range`.
 */
export function readyValues(
  { kernel, b, storage, masks }: Place,
  values: ValueArray,
  dtype: Dtype,
): ValueArray {
  const own = convertValues(values, dtype, b.dtype, (at) => `element ${at} of ${b.name}`)
  const mask = maskOver(kernel, b)
  const words = mask && masks.get(mask.name)
  if (!mask || !words) return own
  // A mask covers a tree completely, or not at all.
  const trees = storage.trees.map((tree) => ({
    size: storage.levels.get(tree.at(-1)!)!.positions,
    isMasked: mask.axes.includes(tree[0]!),
  }))
  const count = trees.reduce((n, t) => n * (t.isMasked ? t.size : 1), 1)
  const held = unpackFields(words as Int32Array, MASK_BITS, count)
  const out = filledArray(b.dtype, own.length, b.fill)
  for (let p = 0; p < own.length; p++) {
    let [rest, at, step] = [p, 0, 1]
    for (let k = trees.length - 1; k >= 0; k--) {
      const { size, isMasked } = trees[k]!
      if (isMasked) {
        at += (rest % size) * step
        step *= size
      }
      rest = Math.floor(rest / size)
    }
    if (held[at] === 1) out[p] = own[p]!
  }
  return out
}
