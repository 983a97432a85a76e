/**
 * Element storage on devices without narrow types (WGSL): one 32-bit word an element. f16 and bf16 widen to
 * f32, i8 to i32, u8 and bool to u32; f32, i32 and u32 are words already; f64 has no word and is refused.
 *
 * Widening is exact. Narrowing rounds to nearest, ties to even, keeps infinities, signed zeros, subnormals and
 * NaN payloads, and wraps integers modulo their width (a kernel that stays in range loses nothing).
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { HostArray } from './device.ts'

/** A type whose elements are one 32-bit word. */
export type WordDtype = 'f32' | 'i32' | 'u32'
export type WordArray = Float32Array | Int32Array | Uint32Array

const WORD: Readonly<Record<Exclude<Dtype, 'f64'>, WordDtype>> = {
  f32: 'f32',
  f16: 'f32',
  bf16: 'f32',
  i32: 'i32',
  i8: 'i32',
  u32: 'u32',
  u8: 'u32',
  bool: 'u32',
}

/** Bytes of every element on a widening device. */
export const WORD_BYTES = 4

/** The type of the word that holds a `dtype`; `device/no-f64` for f64. `what` names the tensor in the error. */
export function wordDtype(dtype: Dtype, what?: string): WordDtype {
  if (dtype === 'f64')
    fail({
      code: 'device/no-f64',
      message: `${what === undefined ? 'This device' : `${what} is f64: this device`} has no 64-bit floating point`,
      expected: 'f32, f16, bf16, i32, u32, i8, u8 or bool',
      hint: 'declare it f32, or run on the cpu or cuda device',
    })
  return WORD[dtype]
}

/**
 * Host elements (f16 and bf16 as bit patterns in `Uint16Array`) as device words, one each. Arrays that are
 * words already are returned as they are, without a copy.
 */
export function hostToDevice(dtype: Dtype, values: HostArray): WordArray {
  const word = wordDtype(dtype)
  if (dtype === 'f16' || dtype === 'bf16') {
    invariant(values instanceof Uint16Array, `${dtype} values travel as bit patterns in a Uint16Array`)
    const bits = new Uint32Array(values.length)
    if (dtype === 'bf16') for (let k = 0; k < bits.length; k++) bits[k] = values[k]! << 16
    else {
      const table = widenF16()
      for (let k = 0; k < bits.length; k++) bits[k] = table[values[k]!]!
    }
    return new Float32Array(bits.buffer)
  }
  if (dtype === 'bool') return Uint32Array.from(values as Uint8Array, (v) => (v === 0 ? 0 : 1))
  if (word === 'f32') return values instanceof Float32Array ? values : Float32Array.from(values)
  if (word === 'i32') return values instanceof Int32Array ? values : Int32Array.from(values)
  return values instanceof Uint32Array ? values : Uint32Array.from(values)
}

/** The inverse of `hostToDevice`: `length` elements (default: all) of the words in `words`. */
export function deviceToHost(
  dtype: Dtype,
  words: ArrayBuffer,
  length = words.byteLength / WORD_BYTES,
): HostArray {
  switch (dtype) {
    case 'f32':
      return new Float32Array(words, 0, length)
    case 'i32':
      return new Int32Array(words, 0, length)
    case 'u32':
      return new Uint32Array(words, 0, length)
    case 'f16':
      return Uint16Array.from(new Uint32Array(words, 0, length), narrowF16)
    case 'bf16':
      return Uint16Array.from(new Uint32Array(words, 0, length), narrowBf16)
    case 'i8':
      return Int8Array.from(new Int32Array(words, 0, length))
    case 'u8':
      return Uint8Array.from(new Uint32Array(words, 0, length))
    case 'bool':
      return Uint8Array.from(new Uint32Array(words, 0, length), (v) => (v === 0 ? 0 : 1))
    case 'f64':
      wordDtype(dtype)
  }
  invariant(false, `no words of type ${dtype}`)
}

let f16Table: Uint32Array | undefined
/** The f32 bits of each f16 pattern. */
function widenF16(): Uint32Array {
  return (f16Table ??= Uint32Array.from({ length: 65536 }, (_, h) => {
    const sign = (h & 0x8000) << 16
    const exponent = (h >>> 10) & 31
    const fraction = h & 0x3ff
    if (exponent === 31) return sign | 0x7f800000 | (fraction << 13)
    if (exponent !== 0) return sign | ((exponent + 112) << 23) | (fraction << 13)
    if (fraction === 0) return sign
    // A subnormal: its leading one moves to the implicit place.
    const shift = Math.clz32(fraction) - 21
    return sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3ff) << 13)
  }))
}

/** f32 bits to f16 bits. */
function narrowF16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000
  const abs = bits & 0x7fffffff
  if (abs > 0x7f800000) {
    const payload = (abs >>> 13) & 0x3ff
    return sign | 0x7c00 | (payload === 0 ? 0x200 : payload)
  }
  // 65520 lies halfway between the largest f16 and the next power of two, and ties go to the even one.
  if (abs >= 0x477ff000) return sign | 0x7c00
  if (abs >= 0x38800000) {
    const rebased = abs - 0x38000000
    return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13)
  }
  if (abs <= 0x33000000) return sign
  const shift = 126 - (abs >>> 23)
  const mantissa = (abs & 0x7fffff) | 0x800000
  const kept = mantissa >>> shift
  const rest = mantissa & ((1 << shift) - 1)
  const half = 1 << (shift - 1)
  return sign | (rest > half || (rest === half && (kept & 1) === 1) ? kept + 1 : kept)
}

/** f32 bits to bf16 bits. */
function narrowBf16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) {
    const top = bits >>> 16
    return (top & 0x7f) === 0 ? top | 0x40 : top
  }
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16
}

const f64 = new Float64Array(1)
const f64Words = new Uint32Array(f64.buffer)

/** The bits of the nearest float with `fraction` fraction bits and least normal exponent `low`; ties to even. */
function roundBits(x: number, fraction: number, low: number, high: number, width: number): number {
  f64[0] = x
  const sign = f64Words[1]! >>> 31 ? 1 << (width - 1) : 0
  const infinity = (high - low + 2) << fraction
  if (Number.isNaN(x)) return infinity | (1 << (fraction - 1))
  const exponent = ((f64Words[1]! >>> 20) & 0x7ff) - 1023
  if (exponent > high) return sign | infinity
  const e = Math.max(exponent, low)
  // Scaling by a power of two is exact, and adding 2^52 rounds a smaller double to an integer, ties to even.
  const steps = Math.abs(x) * 2 ** (fraction - e) + 2 ** 52 - 2 ** 52
  // A carry out of the fraction lands in the exponent field, up to infinity: that is the right neighbour.
  return sign | (((e - low) << fraction) + steps)
}

/** The f16 bit pattern nearest to a double, ties to even (one rounding, not two). */
export const f16Bits = (x: number): number => roundBits(x, 10, -14, 15, 16)
/** The bf16 bit pattern nearest to a double, ties to even. */
export const bf16Bits = (x: number): number => roundBits(x, 7, -126, 127, 16)

/** The value of an f16 or bf16 bit pattern. */
export function floatOfBits(dtype: 'f16' | 'bf16', bits: number): number {
  f64Words[0] = dtype === 'bf16' ? bits << 16 : widenF16()[bits]!
  return new Float32Array(f64.buffer, 0, 1)[0]!
}

/** The value a scalar of type `dtype` holds after `x` is stored in it. */
export function roundTo(dtype: Dtype, x: number): number {
  switch (dtype) {
    case 'f64':
      return x
    case 'f32':
      return Math.fround(x)
    case 'f16':
      return floatOfBits('f16', f16Bits(x))
    case 'bf16':
      return floatOfBits('bf16', bf16Bits(x))
    case 'i32':
      return x | 0
    case 'u32':
      return x >>> 0
    case 'i8':
      return (x << 24) >> 24
    case 'u8':
      return x & 0xff
    case 'bool':
      return x === 0 ? 0 : 1
  }
}
