/** Element types and the properties that backends need. */
import { SCALAR_TYPES, type ScalarType } from '../../ast/nodes/nodes-base.ts'

export const DTYPES = SCALAR_TYPES
export type Dtype = ScalarType

/** Bytes of one element on the host and, unless a device widens it, in device memory. */
export const DTYPE_BYTES: Readonly<Record<Dtype, number>> = {
  f64: 8,
  f32: 4,
  f16: 2,
  bf16: 2,
  i32: 4,
  u32: 4,
  i8: 1,
  u8: 1,
  bool: 1,
}

export const isFloat = (t: Dtype): boolean => t === 'f64' || t === 'f32' || t === 'f16' || t === 'bf16'
export const isHalf = (t: Dtype): t is 'f16' | 'bf16' => t === 'f16' || t === 'bf16'
export const isInt = (t: Dtype): boolean => t === 'i32' || t === 'u32' || t === 'i8' || t === 'u8'
/** True if the type has numbers that f32 cannot represent: these are not rounded to a half type through f32. */
export const isBeyondF32 = (t: Dtype): t is 'f64' | 'i32' | 'u32' => t === 'f64' || t === 'i32' || t === 'u32'
export const isDtype = (s: string): s is Dtype => (DTYPES as readonly string[]).includes(s)

/** The representable range of an integer type, inclusive. */
export const INT_RANGE: Readonly<Record<'i32' | 'u32' | 'i8' | 'u8', readonly [number, number]>> = {
  i32: [-2147483648, 2147483647],
  u32: [0, 4294967295],
  i8: [-128, 127],
  u8: [0, 255],
}

const RANK: Readonly<Record<Dtype, number>> = {
  bool: 0,
  u8: 1,
  i8: 2,
  u32: 3,
  i32: 4,
  f16: 5,
  bf16: 6,
  f32: 7,
  f64: 8,
}

/**
 * The common type of two operands: the higher of bool < u8 < i8 < u32 < i32 < f16, bf16 < f32 < f64. Integers narrower
 * than 32 bits are computed in 32 bits; f16 with bf16 is computed in f32.
 */
export function join(a: Dtype, b: Dtype): Dtype {
  if (a === b) return a === 'i8' || a === 'u8' ? 'i32' : a
  if ((a === 'f16' && b === 'bf16') || (a === 'bf16' && b === 'f16')) return 'f32'
  const t = RANK[a] > RANK[b] ? a : b
  return t === 'i8' || t === 'u8' ? 'i32' : t
}

/** The type a value of `t` has in registers: 32 bits at least. */
export const computeType = (t: Dtype): Dtype =>
  t === 'f16' || t === 'bf16' ? 'f32' : t === 'i8' || t === 'u8' ? 'i32' : t
