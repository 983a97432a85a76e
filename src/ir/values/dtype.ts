/**
 * Types of elements and of expressions.
 *
 * **`index` and `i32`.** Both are integers, and their operations differ on overflow:
 *
 * - `index` is the type of sizes, iterators, coordinates, positions, and elements of index arrays. Its arithmetic is exact:
 *   before a run, a check of ranges (`run/execution/index-ranges.ts`) decides the width: 32 bits, or 64 bits for large
 *   sizes on targets with wide indices.
 *   Therefore targets print plain operators, and passes may reorder sums. It is the default type of the constructors.
 * - `i32` is the type of values of the kernel's source. Its arithmetic wraps modulo 2^32 on every target.
 *
 * No declaration of the source has the type `index`, and no array is stored as `index`: `scalarType` is the stored
 * type. With 64 bits, only registers are wide (`WideIndices` of a target); sizes and index arrays remain i32.
 *
 * **Elaboration.** A name of type `index` in a value is converted, so that all arithmetic above it is i32. In a
 * coordinate (the index of an access, an extent), the name remains an `index`:
 *
 * | source (i, j: iterators; n: size; x, s[i]: i32) | expression |
 * |---|---|
 * | `C[i] = (i * i + i) / 3` | `C[i] = (i32(i) * i32(i) + i32(i)) / 3`, which wraps |
 * | ... after `unroll i by 4` | `C[v * 4 + 1] = (i32(v * 4 + 1) * ...`: exact below the conversion, wraps above it |
 * | `if i < j`, `if i * 4 + j < n` | unchanged: comparisons of quasi-affine coordinates are control expressions (as in Exo) |
 * | `if i < x`, `if i * i < n` | `i < x`, `i32(i) * i32(i) < n` |
 * | `min(i, x)`, `select(c, i, x)`, `i / x` | `min(i32(i), x)`, `select(c, i32(i), x)`, `i32(i) / x` |
 * | `shift_left(n, 2)`, `-i`, `let y = i + 1` | `shift_left(i32(n), 2)`, `-i32(i)`, `let y = i32(i) + 1` |
 * | `let y = i` | `y` is another name of the `index` i |
 * | `f32(i)`, `i * 0.5` | `f32(i32(i))`, `f32(i32(i)) * 0.5` |
 * | `A[i + 1, j / n]`, `dense_fixed(2 * n)` | unchanged: `index` |
 * | `A[s[i], j]`, `A[s[i] + i]` | unchanged: the i32 is converted, and must be a coordinate of A |
 * | `A[s[i] * x]` | i32 arithmetic of values, which wraps; its result is converted |
 *
 * An operation on an i32 and an `index` has type `index`, so code that the compiler derives from coordinates and index
 * arrays remains exact. Literals have the type of the other operand. Conversions between the two types print as
 * nothing if both have 32 bits.
 */
import { SCALAR_TYPES, type ScalarType } from '../../ast/nodes/nodes-base.ts'

/** The types of stored elements, which the source can name. */
export const DTYPES = SCALAR_TYPES
export type Dtype = ScalarType
export type ExprType = Dtype | 'index'

/** The type in which a value of type `t` is stored, and computed unless indices have 64 bits. */
export const scalarType = (t: ExprType): Dtype => (t === 'index' ? 'i32' : t)
/** True for the types whose values are i32 in registers, except narrower ones: `i32` and `index`. */
export const isWord = (t: ExprType): boolean => scalarType(t) === 'i32'
/** The type of expressions that load an element of a buffer. */
export const elementType = ({ role, dtype }: { readonly role: string; readonly dtype: Dtype }): ExprType =>
  role === 'index' ? 'index' : dtype

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

export const isFloat = (t: ExprType): boolean => t === 'f64' || t === 'f32' || t === 'f16' || t === 'bf16'
export const isHalf = (t: ExprType): t is 'f16' | 'bf16' => t === 'f16' || t === 'bf16'
export const isInt = (t: ExprType): boolean => isWord(t) || t === 'u32' || t === 'i8' || t === 'u8'
/** True if the type has numbers that f32 cannot represent: these are not rounded to a half type through f32. */
export const isBeyondF32 = (t: ExprType): t is 'f64' | 'i32' | 'u32' | 'index' =>
  t === 'f64' || t === 'u32' || isWord(t)
export const isDtype = (s: string): s is Dtype => (DTYPES as readonly string[]).includes(s)

/** The representable range of an integer type, inclusive. */
export const INT_RANGE: Readonly<Record<'i32' | 'u32' | 'i8' | 'u8', readonly [number, number]>> = {
  i32: [-2147483648, 2147483647],
  u32: [0, 4294967295],
  i8: [-128, 127],
  u8: [0, 255],
}

const RANK: Readonly<Record<ExprType, number>> = {
  bool: 0,
  u8: 1,
  i8: 2,
  u32: 3,
  i32: 4,
  index: 5,
  f16: 6,
  bf16: 7,
  f32: 8,
  f64: 9,
}

/**
 * The common type of two operands: the higher of bool < u8 < i8 < u32 < i32 < index < f16, bf16 < f32 < f64. Integers narrower
 * than 32 bits are computed in 32 bits; f16 with bf16 is computed in f32.
 */
export function join(a: Dtype, b: Dtype): Dtype
export function join(a: ExprType, b: ExprType): ExprType
export function join(a: ExprType, b: ExprType): ExprType {
  if (a === b) return a === 'i8' || a === 'u8' ? 'i32' : a
  if ((a === 'f16' && b === 'bf16') || (a === 'bf16' && b === 'f16')) return 'f32'
  const t = RANK[a] > RANK[b] ? a : b
  return t === 'i8' || t === 'u8' ? 'i32' : t
}

/** The type a value of `t` has in registers: 32 bits at least. */
export const computeType = (t: ExprType): Dtype =>
  isHalf(t) ? 'f32' : t === 'i8' || t === 'u8' ? 'i32' : scalarType(t)
