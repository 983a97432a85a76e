/**
 * Elements in WGSL's memory. Types narrower than 32 bits occupy a word each (the webgpu device converts on transfer) and are
 * rounded when written; f16 is native if the device supports it.
 */
import { type Dtype, isFloat } from '../../../ir/dtype.ts'
import type { BufferRef, Helpers } from '../../spellings.ts'
import { help } from './helpers.ts'

/** Elements of a vector: arrays that are read or written so are arrays of these. */
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

/** A value as the element type holds it, in a register. */
export function round(t: Dtype, x: string, helpers: Helpers): string {
  if (t === 'f16' || t === 'bf16') return help(helpers, `round_${t}`, x)
  return t === 'i8' ? `(((${x}) << 24u) >> 24u)` : t === 'u8' ? `((${x}) & 255)` : x
}

/** An element of an array that a launch updates atomically: bits of a word. */
export interface AtomicElement {
  /** The word it is in. */
  readonly cell: string
  /** The element, of the word's value. */
  readonly value: (word: string, helpers: Helpers) => string
  /** The word with this element. */
  readonly replaced: (word: string, value: string, helpers: Helpers) => string
  /** True if no other element shares the word. */
  readonly alone: boolean
}

export class Elements {
  readonly #halves: boolean

  /** `halves`: the device has f16. */
  constructor(halves: boolean) {
    this.#halves = halves
  }

  #isHalf(t: Dtype): boolean {
    return this.#halves && t === 'f16'
  }

  /** Element type of a storage or workgroup array. */
  type(t: Dtype): string {
    return this.#isHalf(t) ? 'f16' : WORD[t]
  }

  /** Type of an array; `length` in elements, if known. */
  arrayType({ buffer: { dtype }, atomic, vector }: BufferRef, length?: number): string {
    const [element, each] = atomic
      ? [`atomic<${dtype === 'i32' || dtype === 'i8' ? 'i32' : 'u32'}>`, this.#isHalf(dtype) ? 2 : 1]
      : vector
        ? [`vec${VECTOR}<${this.type(dtype)}>`, VECTOR]
        : [this.type(dtype), 1]
    return length === undefined ? `array<${element}>` : `array<${element}, ${Math.ceil(length / each)}>`
  }

  /** Decodes the stored word of an element; `encode` is the inverse. */
  decode(t: Dtype, word: string): string {
    if (this.#isHalf(t)) return `f32(${word})`
    return t === 'bool' ? `(${word} != 0u)` : t === 'u8' ? `i32(${word})` : word
  }

  /** `exact`: it needs no rounding. */
  encode(t: Dtype, value: string, helpers: Helpers, exact = false): string {
    if (this.#isHalf(t)) return exact ? `f16(${value})` : help(helpers, 'to_f16', value)
    const rounded = round(t, value, helpers)
    return t === 'bool' ? `select(0u, 1u, ${rounded})` : t === 'u8' ? `u32(${rounded})` : rounded
  }

  atomic({ name, buffer: { dtype: t } }: BufferRef, index: string): AtomicElement {
    if (this.#isHalf(t))
      return {
        cell: `${name}[(${index}) >> 1u]`,
        value: (word, helpers) => help(helpers, 'half_of', word, index),
        replaced: (word, value, helpers) => help(helpers, 'with_half', word, index, value),
        alone: false,
      }
    return {
      cell: `${name}[${index}]`,
      value: (word) => (isFloat(t) ? `bitcast<f32>(${word})` : this.decode(t, word)),
      replaced: (_, value, helpers) => {
        const element = this.encode(t, value, helpers)
        return isFloat(t) ? `bitcast<u32>(${element})` : element
      },
      alone: true,
    }
  }
}
