/** Results back in the caller's coordinates, and the same inputs as the reference takes them. */

import { toCoords } from '../formats/coords.ts'
import { positionsOf } from '../formats/scatter.ts'
import type { Tensor, ValueArray } from '../formats/tensor.ts'
import { decoder, newValues } from '../formats/values.ts'
import { chainTo } from '../ir/axis.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { RefInputs, RefTensor } from '../ir/reference/index.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, callerAxesOf, isStructured } from './axes.ts'
import { extentsOf, fullColumns } from './sources.ts'
import { mapped } from './structure.ts'
import type { Bound } from './types.ts'

/** The values of a buffer as a tensor: dense, or coordinates with values where any of its axes is not. */
export function readTensor(bound: Bound, name: string, values: ValueArray): Tensor {
  const { kernel } = bound
  const buffer = kernel.buffers.find((b) => b.name === name)!
  const axes = allAxesOf(kernel)
  const over = callerAxesOf(kernel, buffer)
  const extents = extentsOf(kernel, bound.params)
  const shape = over.map((a) => extents.get(a) ?? 0)
  const structured = over.some((a) => isStructured(axes, a))
  const storage = bound.storages.get(name)!
  if (over.join() === buffer.axes.join()) {
    if (!structured) return { kind: 'dense', shape, values, dtype: buffer.dtype }
    return { ...toCoords(storage, values, buffer.dtype), shape }
  }
  // Only what the caller's own structure holds comes back: padding inside blocks is the format's business.
  const columns = fullColumns(over, axes, extents, bound.sources())
  const to = mapped(kernel, { name, axes: over, columns, tensor: null }, bound.params, extents)
  const at = positionsOf(
    storage,
    buffer.axes.map((a) => to.get(a)!),
  )
  const n = columns[0]?.length ?? 0
  const out = newValues(buffer.dtype, n)
  for (let e = 0; e < n; e++) out[e] = values[at ? at[e]! : e]!
  if (structured) return { kind: 'coords', shape, coords: columns, values: out, dtype: buffer.dtype }
  return { kind: 'dense', shape, values: out, dtype: buffer.dtype }
}

/** What was bound, for the reference: `kernel` is the kernel as written. */
export function referenceInputs(kernel: Kernel1, bound: Bound): RefInputs {
  const buffers: Record<string, RefTensor> = {}
  const structure: Record<string, { coords: Int32Array[] }> = {}
  for (const [name, t] of bound.dense) buffers[name] = numbers(t.values!, t.dtype, kernel, name)
  for (const s of bound.sources()) {
    const buffer = kernel.buffers.find((b) => b.name === s.name)
    if (buffer && (buffer.role === 'in' || buffer.role === 'inout')) {
      const values = s.tensor?.values ? numbers(s.tensor.values, s.tensor.dtype, kernel, s.name) : null
      const apart = kernel.axes.some((a) => buffer.axes.includes(a.name) && 'unique' in a && !a.unique)
      buffers[s.name] = { coords: [...s.columns], values, duplicates: apart ? 'keep' : 'sum' }
    } else {
      const axis = buffer ? leafOf(kernel, s.axes) : s.name
      if (axis !== undefined) {
        const keep = chainTo(allAxesOf(kernel), axis).map((a) => s.columns[s.axes.indexOf(a)]!)
        structure[axis] = { coords: keep }
      }
    }
  }
  const params: Record<string, number> = {}
  for (const p of kernel.params) params[p.name] = bound.params.get(p.name) ?? 0
  return { params, buffers, structure }
}

const leafOf = (kernel: Kernel1, over: readonly string[]): string | undefined => {
  const axes = allAxesOf(kernel)
  return over.findLast((a) => isStructured(axes, a))
}

/** Values as float64, rounded to the type they are stored in. */
function numbers(values: ValueArray, dtype: Dtype, kernel: Kernel1, name: string): ArrayLike<number> {
  const read = decoder(dtype)
  const target = kernel.buffers.find((b) => b.name === name)?.dtype
  const wide = read ? Float64Array.from(values as ArrayLike<number>, read) : values
  return target === 'f32' && dtype === 'f64' ? Float32Array.from(wide) : wide
}
