/** Tensors from arrays, typed arrays, and lists of numbers. */

import { byName } from '../../ast/by-name.ts'
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectFields, FLAG } from '../../ast/diagnostics/value-kinds.ts'
import { FIELD_WIDTHS, isFieldWidth } from '../../ir/coordinates/axis.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { packFields, unpackFields } from '../../ir/values/packed-fields.ts'
import {
  type CoordTensor,
  checkValueArray,
  convertValues,
  DenseOnDevice,
  type DenseTensor,
  type Repair,
  type StoredTensor,
  type Tensor,
  type ValueArray,
} from '../../storage/tensor.ts'
import {
  checkDense,
  checkDtype,
  checkEntries,
  checkShape,
  checkWithin,
  coordinatesOf,
  expectArgument,
  expectInt32s,
  expectLevels,
  isTyped,
  numbersOf,
} from './argument-checks.ts'

const NATURAL: readonly (readonly [new (n: number) => ValueArray, Dtype])[] = [
  [Float64Array, 'f64'],
  [Float32Array, 'f32'],
  [Int32Array, 'i32'],
  [Uint32Array, 'u32'],
  [Int8Array, 'i8'],
  [Uint8Array, 'u8'],
]

/**
 * The element type of a typed array. Uint16Array is ambiguous (f16 or bf16), so the caller must give the type. Throws SptError
 * `tensor/dtype`.
 */
export function dtypeOf(values: ValueArray): Dtype {
  const found = NATURAL.find(([type]) => values instanceof type)
  if (found) return found[1]
  if (!(values instanceof Uint16Array))
    return failAs('tensor/dtype', {
      message: `no element type is stored in ${Object.prototype.toString.call(values).slice(8, -1)}`,
      expected: NATURAL.map(([type]) => type.name).join(', '),
      ...((values as unknown) instanceof Int16Array
        ? { hint: 'integers: Int32Array.from(values); bits of f16 or bf16: Uint16Array.from(values)' }
        : {}),
    })
  return failWith('tensor/dtype', 'a 16-bit array can hold f16 or bf16', {
    expected: "a dtype: 'f16' or 'bf16'",
    hint: "pass the type, as in dense([2, 3], bits, 'f16')",
  })
}

export type Values = ValueArray | readonly number[] | readonly boolean[]

const typed = (values: Values, what: string, dtype: Dtype | undefined): ValueArray => {
  if (Array.isArray(values)) return numbersOf(values, what, dtype)
  expectArgument(isTyped(values), `the values of ${what}`, values, 'a typed array or a list of numbers')
  return values as ValueArray
}

/** Values in a type: plain numbers are converted, typed arrays must have it. */
function element(values: ValueArray, dtype: Dtype | undefined): { values: ValueArray; dtype: Dtype } {
  if (dtype === undefined) return { values, dtype: dtypeOf(values) }
  checkDtype(dtype)
  if (values instanceof Float64Array && dtype !== 'f64')
    return { values: convertValues(values, 'f64', dtype), dtype }
  checkValueArray(values, dtype)
  return { values, dtype }
}

function pattern(dtype: Dtype = 'f32'): { values: null; dtype: Dtype } {
  checkDtype(dtype)
  return { values: null, dtype }
}

/** Creates a dense row-major tensor; plain numbers are f64 by default. */
export function dense(shape: readonly number[], values: Values, dtype?: Dtype): DenseTensor {
  checkShape(shape)
  const array = typed(values, 'a dense tensor', dtype)
  checkDense(shape, array)
  return { kind: 'dense', shape, ...element(array, dtype) }
}

/**
 * Creates a sparse tensor by coordinates: one array per dimension, entries in any order. Equal coordinates are summed. Without values, it
 * is a pattern.
 */
export function coords(
  shape: readonly number[],
  columns: readonly (Int32Array | readonly number[])[],
  values: Values | null = null,
  dtype?: Dtype,
): CoordTensor {
  checkShape(shape)
  expectArgument(Array.isArray(columns), 'the coordinates', columns, 'one list for each dimension')
  const list = columns.map((c, d) => coordinatesOf(c, `the coordinates of dimension ${d}`))
  const array = values === null ? null : typed(values, 'a sparse tensor', dtype)
  checkEntries(shape, list, array)
  checkWithin(shape, list)
  return { kind: 'coords', shape, coords: list, ...(array ? element(array, dtype) : pattern(dtype)) }
}

/** Integers from 0 to 2^31 - 1. */
export type Integers =
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array
  | BigInt64Array
  | BigUint64Array
  | readonly number[]

/**
 * Creates a tensor from ready-made arrays of an axis tree, such as CSR. Arrays are used without a copy after validation; other integer
 * types are converted. `sort`: segments may be unsorted. `sum`: indices may repeat, and their values are summed. Both copy the arrays when
 * the tensor is bound.
 * @throws SptError `tensor/…`, `api/argument`
 */
export function stored(
  shape: readonly number[],
  arrays: Readonly<Record<string, { readonly [A in keyof StoredTensor['arrays'][string]]?: Integers }>>,
  values: ValueArray | null = null,
  dtype?: Dtype,
  repair: Repair = {},
): StoredTensor {
  checkShape(shape)
  expectLevels('the arrays', arrays, (axis) => `the arrays of axis ${axis}`)
  expectFields('stored', repair, { sort: FLAG, sum: FLAG })
  const own = byName(
    Object.entries(arrays).map(([axis, of]) => [
      axis,
      byName(
        Object.entries(of).flatMap(([name, a]) =>
          a === undefined ? [] : [[name, integersOf(a, name, axis)] as const],
        ),
      ),
    ]),
  )
  const array = values === null ? null : typed(values, 'a stored tensor', dtype)
  return {
    kind: 'stored',
    shape,
    arrays: own,
    ...(array ? element(array, dtype) : pattern(dtype)),
    ...((repair.sort || repair.sum) && { repair }),
  }
}

/** Converts an index array to i32; masks are reinterpreted as 32-bit words. */
function integersOf(array: unknown, name: string, axis: string): Int32Array {
  if (name === 'mask' && array instanceof Uint32Array)
    return new Int32Array(array.buffer, array.byteOffset, array.length)
  return coordinatesOf(array, `${name} of axis ${axis}`)
}

/**
 * Packs indices of an axis declared `packed bits` into fields of 32-bit words, the first in the lowest bits.
 * @throws SptError `api/argument`
 */
export function packIndices(indices: readonly number[] | ValueArray, bits: number): Int32Array {
  checkBits(bits)
  expectArgument(
    Array.isArray(indices) || isTyped(indices),
    'the indices',
    indices,
    'a list of integers, or a typed array',
  )
  for (let k = 0; k < indices.length; k++)
    expectArgument(
      Number.isInteger(indices[k]) && indices[k]! >= 0 && indices[k]! < 2 ** bits,
      `the index at position ${k}`,
      indices[k],
      `an integer from 0 to ${2 ** bits - 1}, which ${bits} bits hold`,
    )
  return packFields(indices, bits)
}

/** Unpacks the first `count` indices. @throws SptError `api/argument` */
export function unpackIndices(words: Int32Array, bits: number, count: number): Int32Array {
  checkBits(bits)
  expectInt32s('the words', words, ', as packIndices makes them')
  const most = words.length * (32 / bits)
  expectArgument(
    Number.isInteger(count) && count >= 0 && count <= most,
    'the number of indices',
    count,
    `an integer from 0 to ${most}, as many as the words hold`,
  )
  return unpackFields(words, bits, count)
}

const checkBits = (bits: number): void =>
  expectArgument(isFieldWidth(bits), 'the number of bits', bits, FIELD_WIDTHS)

/** A tensor whose arrays are independent of the caller's. */
export function copyOf(t: Tensor): Tensor {
  if (t instanceof DenseOnDevice) return t
  const values = t.values?.slice() ?? null
  if (t.kind === 'dense') return { ...t, values: values! }
  if (t.kind === 'coords') return { ...t, coords: t.coords.map((c) => c.slice()), values }
  const copied = (axis: StoredTensor['arrays'][string]) =>
    byName(Object.entries(axis).map(([name, a]) => [name, a!.slice()] as const))
  return { ...t, arrays: byName(Object.entries(t.arrays).map(([axis, of]) => [axis, copied(of)])), values }
}

/** A value for a buffer: a tensor, or an array that fits a dense one. */
export type Bindable = Tensor | ValueArray | readonly number[]
