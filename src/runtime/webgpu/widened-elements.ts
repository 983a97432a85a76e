/**
 * Element storage on devices without narrow types (WGSL): one 32-bit word per element (`ir/values/words.ts`); f64 is rejected. Devices with
 * the feature `shader-f16` store f16 unchanged.
 */
import { failAs, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { arrayClass } from '../../ir/values/arrays.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/values/dtype.ts'
import {
  fromWords,
  type NarrowDtype,
  toWords,
  WORD,
  type WordArray,
  type WordDtype,
} from '../../ir/values/words.ts'
import type { Device, HostArray } from '../device.ts'

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

/** Words of host elements, for types that have them. @throws SptError `device/no-f64` */
export function hostToDevice(dtype: Dtype, values: HostArray): WordArray {
  wordDtype(dtype)
  const areBits = (dtype !== 'f16' && dtype !== 'bf16') || values instanceof Uint16Array
  invariant(areBits, `${dtype} values travel as bit patterns in a Uint16Array`)
  return toWords(dtype as NarrowDtype, values)
}

/** Inverse of `hostToDevice`: the first `length` elements (default: all) of `words`. */
export function deviceToHost(
  dtype: Dtype,
  words: ArrayBuffer,
  length = words.byteLength / WORD_BYTES,
): HostArray {
  wordDtype(dtype)
  return fromWords(dtype as NarrowDtype, words, length) as HostArray
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
