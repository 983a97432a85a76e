/**
 * Element storage on devices without narrow types (WGSL): one 32-bit word per element. f16 and bf16 are widened to f32, i8 to
 * i32, u8 and bool to u32; f64 is rejected. Devices with the feature `shader-f16` store f16 unchanged.
 *
 * Widening is exact. Narrowing rounds to nearest (ties to even), preserves infinities, signed zeros, subnormals and NaN
 * payloads, and wraps integers modulo their width (exact for values in range).
 */
import { failAs, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { arrayClass } from '../../ir/values/arrays.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/values/dtype.ts'
import {
  f16ToF32Bits,
  f32BitsToBf16,
  f32BitsToF16,
  fromBf16,
  fromF16,
  toBf16,
  toF16,
} from '../../ir/values/half.ts'
import type { Device, HostArray } from '../device.ts'

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

export const WORD_BYTES = DTYPE_BYTES.i32

type WithStorage = Pick<Device, 'storage' | 'features'>

/** True if an element of the type occupies a 32-bit word on the device. */
export const isWord = (device: WithStorage, dtype: Dtype): boolean =>
  device.storage === 'words' && !(dtype === 'f16' && device.features.has('shader-f16'))

/** Bytes of an element in the device's memory. */
export const storedBytes = (device: WithStorage, dtype: Dtype): number =>
  isWord(device, dtype) ? WORD_BYTES : DTYPE_BYTES[dtype]

/** The word type of a `dtype`; `subject` names the tensor in the error. @throws SptError `device/no-f64` */
export function wordDtype(dtype: Dtype, subject?: string): WordDtype {
  if (dtype === 'f64')
    failAs('device/no-f64', {
      message: `${subject === undefined ? 'This device' : `${subject} is f64: this device`} has no 64-bit floating point`,
      expected: 'f32, f16, bf16, i32, u32, i8, u8 or bool',
      hint: 'declare it f32, or run on the cpu or cuda device',
    })
  return WORD[dtype]
}

/** Converts host elements (f16 and bf16 as bit patterns in `Uint16Array`) to device words. Arrays of words are returned without a copy. */
export function hostToDevice(dtype: Dtype, values: HostArray): WordArray {
  const word = wordDtype(dtype)
  if (dtype === 'f16' || dtype === 'bf16') {
    invariant(values instanceof Uint16Array, `${dtype} values travel as bit patterns in a Uint16Array`)
    const bits = new Uint32Array(values.length)
    if (dtype === 'bf16') for (let k = 0; k < bits.length; k++) bits[k] = values[k]! << 16
    else {
      const table = f16ToF32Bits()
      for (let k = 0; k < bits.length; k++) bits[k] = table[values[k]!]!
    }
    return new Float32Array(bits.buffer)
  }
  if (dtype === 'bool') return new Uint32Array(values as Uint8Array).map((v) => (v === 0 ? 0 : 1))
  if (word === 'f32') return values instanceof Float32Array ? values : Float32Array.from(values)
  if (word === 'i32') return values instanceof Int32Array ? values : Int32Array.from(values)
  return values instanceof Uint32Array ? values : Uint32Array.from(values)
}

const FROM_WORDS: Readonly<Record<Exclude<Dtype, 'f64'>, (words: ArrayBuffer, length: number) => HostArray>> =
  {
    f32: (words, n) => new Float32Array(words, 0, n),
    i32: (words, n) => new Int32Array(words, 0, n),
    u32: (words, n) => new Uint32Array(words, 0, n),
    f16: (words, n) => Uint16Array.from(new Uint32Array(words, 0, n), f32BitsToF16),
    bf16: (words, n) => Uint16Array.from(new Uint32Array(words, 0, n), f32BitsToBf16),
    i8: (words, n) => Int8Array.from(new Int32Array(words, 0, n)),
    u8: (words, n) => Uint8Array.from(new Uint32Array(words, 0, n)),
    bool: (words, n) => new Uint8Array(new Uint32Array(words, 0, n).map((v) => (v === 0 ? 0 : 1))),
  }

/** Inverse of `hostToDevice`: the first `length` elements (default: all) of `words`. */
export function deviceToHost(
  dtype: Dtype,
  words: ArrayBuffer,
  length = words.byteLength / WORD_BYTES,
): HostArray {
  wordDtype(dtype)
  return FROM_WORDS[dtype as Exclude<Dtype, 'f64'>](words, length)
}

/** Converts host elements to the layout of the device's memory. `fromDevice` is the inverse. */
export const toDevice = (device: WithStorage, dtype: Dtype, values: HostArray): HostArray =>
  isWord(device, dtype) ? hostToDevice(dtype, values) : values

export const fromDevice = (
  device: WithStorage,
  dtype: Dtype,
  bytes: ArrayBuffer,
  length: number,
): HostArray =>
  isWord(device, dtype)
    ? deviceToHost(dtype, bytes, length)
    : (new (arrayClass(dtype))(bytes, 0, length) as HostArray)

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
