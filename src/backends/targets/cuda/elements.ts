/** Scalars and vectors in memory and registers of CUDA. Half types are 16 bits in memory and f32 in registers. */
import { type Dtype, isHalf } from '../../../ir/values/dtype.ts'
import type { Helpers } from '../../print/spellings.ts'
import { addHelper } from './helpers.ts'

/** Element types in memory and in parameter lists. */
export const CUDA_MEMORY: Readonly<Record<Dtype, string>> = {
  f64: 'double',
  f32: 'float',
  f16: 'unsigned short',
  bf16: 'unsigned short',
  i32: 'int',
  u32: 'unsigned',
  i8: 'signed char',
  u8: 'unsigned char',
  bool: 'unsigned char',
}

/** Element types in registers. */
export const REGISTER: Readonly<Record<Dtype, string>> = {
  ...CUDA_MEMORY,
  f16: 'float',
  bf16: 'float',
  i8: 'int',
  u8: 'int',
  bool: 'bool',
}

export const fromMemory = (t: Dtype, text: string, helpers: Helpers): string => {
  if (isHalf(t)) {
    addHelper(helpers, `${t}_to_f32`)
    return `${t}_to_f32(${text})`
  }
  return t === 'bool' ? `(${text} != 0)` : t === 'i8' || t === 'u8' ? `(int)${text}` : text
}

export const toMemory = (t: Dtype, text: string, helpers: Helpers): string => {
  if (isHalf(t)) {
    addHelper(helpers, `f32_to_${t}`)
    return `f32_to_${t}(${text})`
  }
  return t === 'bool'
    ? `(unsigned char)(${text} ? 1 : 0)`
    : t === 'i8' || t === 'u8'
      ? `(${CUDA_MEMORY[t]})(${text})`
      : text
}

/** Vector widths of one access in elements, largest first. */
export const WIDTHS: Readonly<Record<Dtype, readonly number[]>> = {
  f64: [2],
  f32: [4, 2],
  i32: [4, 2],
  u32: [4, 2],
  f16: [8, 4, 2],
  bf16: [8, 4, 2],
  i8: [],
  u8: [],
  bool: [],
}

const COMPONENTS = ['x', 'y', 'z', 'w'] as const

/** Vector type of `count` elements; half types are packed in words. */
export function vectorType(t: Dtype, count: number): string {
  if (isHalf(t)) return count === 2 ? 'unsigned' : `uint${count / 2}`
  return `${t === 'f32' ? 'float' : t === 'f64' ? 'double' : t === 'u32' ? 'uint' : 'int'}${count}`
}

/** Element `k` of a vector, in a register. */
export function vectorElement(t: Dtype, vector: string, k: number, count: number, helpers: Helpers): string {
  if (!isHalf(t)) return `${vector}.${COMPONENTS[k]}`
  const word = count === 2 ? vector : `${vector}.${COMPONENTS[k >> 1]}`
  return fromMemory(t, `(unsigned short)(${k % 2 === 0 ? word : `${word} >> 16`})`, helpers)
}

/** Packs values in registers into a vector. */
export function packVector(t: Dtype, values: readonly string[], helpers: Helpers): string {
  if (!isHalf(t)) return `make_${vectorType(t, values.length)}(${values.join(', ')})`
  addHelper(helpers, `f32_to_${t}`)
  addHelper(helpers, `f32_to_${t}x2`)
  const words = Array.from(
    { length: values.length / 2 },
    (_, k) => `f32_to_${t}x2(${values[2 * k]}, ${values[2 * k + 1]})`,
  )
  return words.length === 1 ? words[0]! : `make_uint${words.length}(${words.join(', ')})`
}
