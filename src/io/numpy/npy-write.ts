/** Writes `.npy`, version 1, C order, little-endian. */

import type { Dtype } from '../../ir/values/dtype.ts'
import type { ValueArray } from '../../storage/tensor.ts'
import { convertValues } from '../element-arrays.ts'
import { DESCRIPTORS, littleEndian } from './npy-elements.ts'

/** Alignment of the data in bytes, so that the file can be memory-mapped. */
const ALIGN = 64

function header(descriptor: string, shape: readonly number[]): Uint8Array {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ')
  const text = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': (${sizes}), }`
  const length = Math.ceil((10 + text.length + 1) / ALIGN) * ALIGN - 10
  const out = new Uint8Array(10 + length).fill(32)
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8])
  out.set(new TextEncoder().encode(text), 10)
  out[out.length - 1] = 10
  return out
}

/** The file in two chunks: header and elements. `values` in row-major order; bf16 is written as f32. */
export function npyChunks(values: ValueArray, shape: readonly number[], dtype: Dtype): Uint8Array[] {
  const stored = dtype === 'bf16' ? convertValues(values, 'bf16', 'f32', 'array') : values
  return [header(DESCRIPTORS[dtype], shape), littleEndian(stored)]
}

/** A zero-dimensional array of ASCII bytes, as scipy names its formats. */
export function npyBytesChunks(text: string): Uint8Array[] {
  return [header(`|S${text.length}`, []), new TextEncoder().encode(text)]
}
