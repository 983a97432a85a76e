/** Storage order of dense tensors whose axes are declared in another order. */

import { chainTo } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { arrayClass, coordinatesAt } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { DenseTensor, ValueArray } from '../../../storage/tensor.ts'
import { convertValues } from '../../../storage/values.ts'
import { allAxesOf, asDeclared, type CallerTensor, isStructured } from './caller-tensors.ts'

/** The order in which a buffer stores its dimensions: tree by tree, in the order of the roots. `null` if this is the declared order. */
export function storageOrder(kernel: Kernel1, names: readonly string[]): readonly number[] | null {
  const axes = allAxesOf(kernel)
  const roots = names.map((n) => chainTo(axes, n)[0]!)
  const trees = [...new Set(roots)]
  const order = trees.flatMap((r) => roots.flatMap((x, k) => (x === r ? [k] : [])))
  return order.every((d, k) => d === k) ? null : order
}

/** Returns true if a tensor is dense, without a format, and stored in the order of its dimensions. */
export const isRowMajor = (kernel: Kernel1, t: CallerTensor): boolean =>
  asDeclared(t) &&
  !t.axes.some((a) => isStructured(allAxesOf(kernel), a)) &&
  storageOrder(kernel, t.axes) === null

/** Permutes the dimensions of row-major values. `order[k]`: the input dimension that becomes dimension k. */
export function inOrder(
  values: ValueArray,
  dtype: Dtype,
  shape: readonly number[],
  order: readonly number[],
): ValueArray {
  const out = new (arrayClass(dtype))(values.length) as ValueArray
  const strides = shape.map((_, k) => shape.slice(k + 1).reduce((a, b) => a * b, 1))
  const at = order.map(() => 0)
  let from = 0
  for (let q = 0; q < out.length; q++) {
    out[q] = values[from]!
    for (let k = order.length - 1; k >= 0; k--) {
      const d = order[k]!
      from += strides[d]!
      if (++at[k]! < shape[d]!) break
      from -= strides[d]! * shape[d]!
      at[k] = 0
    }
  }
  return out
}

/** An element as text: `A[3, 5]`. */
export const elementOf = (name: string, coordinates: readonly number[]): string =>
  `${name}[${coordinates.join(', ')}]`

/** Converts the values of a dense tensor to another type. Throws SptError `bind/value-range`. */
export const convertDense = (
  name: string,
  { values, dtype, shape }: Pick<DenseTensor, 'values' | 'dtype' | 'shape'>,
  to: Dtype,
): ValueArray => convertValues(values, dtype, to, (at) => elementOf(name, coordinatesAt(at, shape)))

/** Returns the inverse of a permutation of dimensions. */
export const inverseOrder = (order: readonly number[]): readonly number[] =>
  order.map((_, d) => order.indexOf(d))
