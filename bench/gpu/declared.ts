/** What a kernel declares, as the tensors that it is given have to be. */
import { isStored, type StoredAxis } from '../../src/ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import type { StoredTensor, ValueArray } from '../../src/node.ts'

/** Inputs in the order in which they are declared. */
export const inputs = (kernel: Kernel1): readonly Buffer1[] => kernel.buffers.filter((b) => b.role === 'in')
export const outputOf = (kernel: Kernel1): Buffer1 => {
  const out = kernel.buffers.find((b) => b.role === 'out')
  if (!out) throw new Error(`${kernel.name} has no output`)
  return out
}

/** The two inputs of a product. */
export function operands(kernel: Kernel1): readonly [Buffer1, Buffer1] {
  const [a, b] = inputs(kernel)
  if (!a || !b) throw new Error(`${kernel.name} has too few inputs`)
  return [a, b]
}

/** The axes that a buffer is declared over, all of them stored. */
export const axesOf = (kernel: Kernel1, buffer: Buffer1): StoredAxis[] =>
  buffer.axes.map((name) => {
    const axis = kernel.axes.find((a) => a.name === name)
    if (!axis || !isStored(axis)) throw new Error(`${name} is no stored axis`)
    return axis
  })

/** Arrays by rows as the kernel's first input: its one sparse axis gets them. */
export function structured(
  kernel: Kernel1,
  shape: readonly number[],
  { indptr, indices }: { readonly indptr: Int32Array; readonly indices: Int32Array },
  values: ValueArray | null,
  dtype: Dtype,
): StoredTensor {
  const axes = axesOf(kernel, inputs(kernel)[0]!)
  const sparse = axes.find((a) => a.kind === 'sparse_variable')
  if (!sparse) throw new Error(`the first input of ${kernel.name} has no axis of varying length`)
  return { kind: 'stored', shape, arrays: { [sparse.name]: { indptr, indices } }, values, dtype }
}
