/**
 * Elements in memory of WGSL. Types narrower than 32 bits occupy a word (the webgpu device converts on transfer) and are rounded
 * when written; f16 is native if the device supports it.
 */
import { type Dtype, isFloat } from '../../../ir/values/dtype.ts'
import type { BufferRef, Helpers } from '../../print/spellings.ts'
import { helperCall } from './helpers.ts'

/** Vector width in elements; arrays with vector accesses are arrays of such vectors. */
export const VECTOR = 4

const WORD: Readonly<Record<Dtype, string>> = {
  f64: 'f32',
  f32: 'f32',
  f16: 'f32',
  bf16: 'f32',
  i32: 'i32',
  u32: 'u32',
  i8: 'i32',
  u8: 'u32',
  bool: 'u32',
}

/** Rounds or wraps a value in a register to its element type. */
export function round(t: Dtype, x: string, helpers: Helpers): string {
  if (t === 'f16' || t === 'bf16') return helperCall(helpers, `round_${t}`, x)
  return t === 'i8' ? `(((${x}) << 24u) >> 24u)` : t === 'u8' ? `((${x}) & 255)` : x
}

/** An element of an array that a launch updates atomically: bits of a word. */
export interface AtomicElement {
  /** The word that contains the element. */
  readonly cell: string
  /** The element's value, decoded from the word. */
  readonly decode: (word: string, helpers: Helpers) => string
  /** The word with the element replaced. */
  readonly replace: (word: string, value: string, helpers: Helpers) => string
  /** True if no other element shares the word. */
  readonly isWholeWord: boolean
}

export type Elements = ReturnType<typeof elementsOf>

/** @param hasF16 the device supports f16 */
export function elementsOf(hasF16: boolean) {
  const isHalf = (t: Dtype): boolean => hasF16 && t === 'f16'
  /** Element type of a storage or workgroup array. */
  const type = (t: Dtype): string => (isHalf(t) ? 'f16' : WORD[t])
  /** Type of an array; `length` in elements, if known. */
  const arrayType = ({ buffer: { dtype }, atomic, vector }: BufferRef, length?: number): string => {
    const [element, elementsPerItem] = atomic
      ? [`atomic<${dtype === 'i32' || dtype === 'i8' ? 'i32' : 'u32'}>`, isHalf(dtype) ? 2 : 1]
      : vector
        ? [`vec${VECTOR}<${type(dtype)}>`, VECTOR]
        : [type(dtype), 1]
    return length === undefined
      ? `array<${element}>`
      : `array<${element}, ${Math.ceil(length / elementsPerItem)}>`
  }
  /** Decodes the stored word of an element; `encode` is the inverse. */
  const decode = (t: Dtype, word: string): string => {
    if (isHalf(t)) return `f32(${word})`
    return t === 'bool' ? `(${word} != 0u)` : t === 'u8' ? `i32(${word})` : word
  }
  /** Encodes a value for storage. `exact`: the value needs no rounding. */
  const encode = (t: Dtype, value: string, helpers: Helpers, exact = false): string => {
    if (isHalf(t)) return exact ? `f16(${value})` : helperCall(helpers, 'to_f16', value)
    const rounded = round(t, value, helpers)
    return t === 'bool' ? `select(0u, 1u, ${rounded})` : t === 'u8' ? `u32(${rounded})` : rounded
  }
  const atomic = ({ name, buffer: { dtype: t } }: BufferRef, index: string): AtomicElement => {
    if (isHalf(t))
      return {
        cell: `${name}[(${index}) >> 1u]`,
        decode: (word, helpers) => helperCall(helpers, 'half_of', word, index),
        replace: (word, value, helpers) => helperCall(helpers, 'with_half', word, index, value),
        isWholeWord: false,
      }
    return {
      cell: `${name}[${index}]`,
      decode: (word) => (isFloat(t) ? `bitcast<f32>(${word})` : decode(t, word)),
      replace: (_, value, helpers) => {
        const element = encode(t, value, helpers)
        return isFloat(t) ? `bitcast<u32>(${element})` : element
      },
      isWholeWord: true,
    }
  }
  return { type, arrayType, decode, encode, atomic }
}
