/** Typed arrays on the host for each element type, and row-major addressing. */
import type { Dtype } from './dtype.ts'

/** f16 and bf16 travel as their bit patterns in `Uint16Array`; bool as 0/1 in `Uint8Array`. */
export type TypedArray =
  | Float64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array

const ARRAY = {
  f64: Float64Array,
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
} as const

/** The array class that carries a type: `Float32Array` for f32, `Uint16Array` (bits) for f16. */
export const arrayClass = (dtype: Dtype): (typeof ARRAY)[Dtype] => ARRAY[dtype]

/** The coordinates of an element in row-major order. */
export function coordinatesAt(element: number, shape: readonly number[]): number[] {
  const out: number[] = []
  for (let d = shape.length - 1, remainder = element; d >= 0; d--) {
    out.unshift(remainder % shape[d]!)
    remainder = Math.floor(remainder / shape[d]!)
  }
  return out
}
