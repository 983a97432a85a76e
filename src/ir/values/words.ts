/**
 * Elements as 32-bit words: f16 and bf16 are widened to f32, i8 to i32, u8 and bool to u32. Widening is exact. Narrowing rounds to nearest
 * (ties to even), preserves infinities, signed zeros, subnormals and NaN payloads, and wraps integers modulo their width (exact for values
 * in range). Without diagnostics, because pages load this module with a plan alone.
 */
import type { TypedArray } from './arrays.ts'
import type { Dtype } from './dtype.ts'
import { f16ToF32Bits, f32BitsToBf16, f32BitsToF16, fromBf16, fromF16, toBf16, toF16 } from './half.ts'

/** A type whose elements are one 32-bit word. */
export type WordDtype = 'f32' | 'i32' | 'u32'
export type WordArray = Float32Array | Int32Array | Uint32Array
/** Types that have words: all except f64. */
export type NarrowDtype = Exclude<Dtype, 'f64'>

export const WORD: Readonly<Record<NarrowDtype, WordDtype>> = {
  f32: 'f32',
  f16: 'f32',
  bf16: 'f32',
  i32: 'i32',
  i8: 'i32',
  u32: 'u32',
  u8: 'u32',
  bool: 'u32',
}

/** Converts host elements (f16 and bf16 as bit patterns in `Uint16Array`) to words. Arrays of words are returned without a copy. */
export function toWords(dtype: NarrowDtype, values: TypedArray): WordArray {
  const word = WORD[dtype]
  if (dtype === 'f16' || dtype === 'bf16') {
    const table = dtype === 'f16' ? f16ToF32Bits() : undefined
    return new Float32Array(Uint32Array.from(values, (v) => (table ? table[v]! : v << 16)).buffer)
  }
  if (dtype === 'bool') return Uint32Array.from(values, (v) => (v === 0 ? 0 : 1))
  if (word === 'f32') return values instanceof Float32Array ? values : Float32Array.from(values)
  if (word === 'i32') return values instanceof Int32Array ? values : Int32Array.from(values)
  return values instanceof Uint32Array ? values : Uint32Array.from(values)
}

const FROM_WORDS: Readonly<Record<NarrowDtype, (words: ArrayBuffer, length: number) => TypedArray>> = {
  f32: (words, n) => new Float32Array(words, 0, n),
  i32: (words, n) => new Int32Array(words, 0, n),
  u32: (words, n) => new Uint32Array(words, 0, n),
  f16: (words, n) => Uint16Array.from(new Uint32Array(words, 0, n), f32BitsToF16),
  bf16: (words, n) => Uint16Array.from(new Uint32Array(words, 0, n), f32BitsToBf16),
  i8: (words, n) => Int8Array.from(new Int32Array(words, 0, n)),
  u8: (words, n) => Uint8Array.from(new Uint32Array(words, 0, n)),
  bool: (words, n) => new Uint8Array(new Uint32Array(words, 0, n).map((v) => (v === 0 ? 0 : 1))),
}

/** Inverse of `toWords`: the first `length` elements of `words`. */
export const fromWords = (dtype: NarrowDtype, words: ArrayBuffer, length: number): TypedArray =>
  FROM_WORDS[dtype](words, length)

/** Rounds or wraps a number to a value of the type. */
const ROUND: Readonly<Record<Dtype, (x: number) => number>> = {
  f64: (x) => x,
  f32: Math.fround,
  f16: (x) => fromF16(toF16(x)),
  bf16: (x) => fromBf16(toBf16(x)),
  i32: (x) => x | 0,
  u32: (x) => x >>> 0,
  i8: (x) => (x << 24) >> 24,
  u8: (x) => x & 0xff,
  bool: (x) => (x === 0 ? 0 : 1),
}

export const roundTo = (dtype: Dtype, x: number): number => ROUND[dtype](x)
