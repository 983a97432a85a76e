/** Tensors from what callers have at hand: arrays, typed arrays, tensors. */
import { fail } from '../ast/diagnostic.ts'
import type { CoordTensor, DenseTensor, StoredTensor, Tensor, ValueArray } from '../formats/tensor.ts'
import type { Dtype } from '../ir/dtype.ts'

const NATURAL: readonly (readonly [new (n: number) => ValueArray, Dtype])[] = [
  [Float64Array, 'f64'],
  [Float32Array, 'f32'],
  [Int32Array, 'i32'],
  [Uint32Array, 'u32'],
  [Int8Array, 'i8'],
  [Uint8Array, 'u8'],
]

/** The element type of a typed array; 16-bit ones hold f16 or bf16 bits, which only the caller can tell. */
export function dtypeOf(values: ValueArray): Dtype {
  const found = NATURAL.find(([type]) => values instanceof type)
  if (found) return found[1]
  return fail({
    code: 'tensor/dtype',
    message: 'a 16-bit array can hold f16 or bf16',
    expected: "a dtype: 'f16' or 'bf16'",
    hint: "pass the type, as in dense([2, 3], bits, 'f16')",
  })
}

const typed = (values: ValueArray | readonly number[]): ValueArray =>
  Array.isArray(values) ? Float64Array.from(values as number[]) : (values as ValueArray)

/** A dense tensor, row-major; plain numbers are f64. */
export function dense(
  shape: readonly number[],
  values: ValueArray | readonly number[],
  dtype?: Dtype,
): DenseTensor {
  const array = typed(values)
  const size = shape.reduce((a, b) => a * b, 1)
  if (array.length !== size)
    fail({
      code: 'tensor/length',
      message: `${array.length} values for shape [${shape.join(', ')}]`,
      expected: `${size} values`,
      hint: 'give the values in row-major order',
    })
  return { kind: 'dense', shape, values: array, dtype: dtype ?? dtypeOf(array) }
}

/** A sparse tensor by coordinates, one array for each dimension, in any order; equal coordinates add up. */
export function coords(
  shape: readonly number[],
  columns: readonly (Int32Array | readonly number[])[],
  values: ValueArray | readonly number[] | null = null,
  dtype?: Dtype,
): CoordTensor {
  const list = columns.map((c) => (c instanceof Int32Array ? c : Int32Array.from(c)))
  if (list.length !== shape.length || list.some((c) => c.length !== list[0]?.length))
    fail({
      code: 'tensor/coords',
      message: `${list.length} coordinate arrays of ${list.map((c) => c.length).join(', ')} entries for shape [${shape.join(', ')}]`,
      expected: `${shape.length} arrays of one length`,
      hint: 'give one array for each dimension',
    })
  const array = values === null ? null : typed(values)
  return {
    kind: 'coords',
    shape,
    coords: list,
    values: array,
    dtype: dtype ?? (array ? dtypeOf(array) : 'f32'),
  }
}

/** Ready-made arrays of an axis tree, such as a CSR's: used as they are, after validation. */
export function stored(
  shape: readonly number[],
  arrays: StoredTensor['arrays'],
  values: ValueArray | null = null,
  dtype?: Dtype,
): StoredTensor {
  return { kind: 'stored', shape, arrays, values, dtype: dtype ?? (values ? dtypeOf(values) : 'f32') }
}

/** What can be bound to a buffer: a tensor, or values that fit a dense one. */
export type Bindable = Tensor | ValueArray | readonly number[]

export const isTensor = (b: Bindable): b is Tensor => !Array.isArray(b) && !ArrayBuffer.isView(b)
