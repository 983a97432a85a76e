/**
 * Elements as 32-bit words: f16 and bf16 are widened to f32, i8 to i32, u8 and bool to u32. Widening is exact. Narrowing rounds to nearest
 * (ties to even), preserves infinities, signed zeros, subnormals and NaN payloads, and wraps integers modulo their width (exact for values
 * in range). Without diagnostics, because pages load this module with a plan alone.
 */
import { arrayClass, type TypedArray } from './arrays.ts'
import type { Dtype } from './dtype.ts'
import { bitsToOdd, f16ToF32Bits, f32BitsToBf16, f32BitsToF16 } from './half.ts'

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

const truth = (v: number): number => +(v !== 0)

/** Converts host elements (f16 and bf16 as bit patterns in `Uint16Array`) to words. Arrays of words are returned without a copy. */
export function toWords(dtype: NarrowDtype, values: TypedArray): WordArray {
  const table = dtype === 'f16' ? f16ToF32Bits() : undefined
  if (table || dtype === 'bf16')
    return new Float32Array(Uint32Array.from(values, (v) => table?.[v] ?? v << 16).buffer)
  const words = arrayClass(WORD[dtype]) as Int32ArrayConstructor
  if (dtype === 'bool') return words.from(values, truth) as WordArray
  return (values instanceof words ? values : words.from(values)) as WordArray
}

/** From words, or from the bits of words of f16 and bf16. */
const NARROW: Readonly<Partial<Record<Dtype, (word: number) => number>>> = {
  f16: f32BitsToF16,
  bf16: f32BitsToBf16,
  bool: truth,
}

/** Inverse of `toWords`: the first `length` elements of `words`. */
export function fromWords(dtype: NarrowDtype, words: ArrayBuffer, length: number): TypedArray {
  const narrow = NARROW[dtype]
  const array = new (arrayClass(narrow ? 'u32' : WORD[dtype]))(words, 0, length)
  if (WORD[dtype] === dtype) return array
  const own = arrayClass(dtype) as Int8ArrayConstructor
  return narrow ? own.from(array, narrow) : own.from(array)
}

/** Rounds or wraps a number to a value of the type. */
export function roundTo(dtype: Dtype, x: number): number {
  const narrow = NARROW[dtype]
  return narrow
    ? toWords(dtype as NarrowDtype, Uint16Array.of(narrow(dtype === 'bool' ? x : bitsToOdd(x))))[0]!
    : arrayClass(dtype).of(x)[0]!
}
