/** Conversion of results from storage order back to the caller's coordinates. */
import { failWith, invariant } from '../../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { toCoords } from '../../../storage/entries/stored-coords.ts'
import { newValues, type Tensor, type ValueArray } from '../../../storage/tensor.ts'
import { type CallerTensor, callerTensor, callerTensors, inOrder } from '../bind-plan.ts'
import { extentsOf } from '../sources/coordinate-sources.ts'
import type { EntryList } from '../sources/entry-list.ts'
import type { Bound } from '../types.ts'

/** Names of the buffers that store a tensor. Throws SptError `bind/unknown-name`. */
export function buffersOf(kernel: Kernel1, name: string): readonly string[] {
  return tensorOf(kernel, name).buffers.map((b) => b.name)
}

/** Returns the tensor of this name. Throws SptError `bind/unknown-name`. */
export function tensorOf(kernel: Kernel1, name: string): CallerTensor {
  const t = callerTensor(kernel, name)
  if (t) return t
  const candidates = callerTensors(kernel).map((x) => x.name)
  return failWith('bind/unknown-name', `kernel ${kernel.name} has no tensor ${name}`, {
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
  })
}

/** Returns true if a tensor is dense and without a format, so its coordinates do not depend on other bound data. */
export function isAlone(kernel: Kernel1, name: string): boolean {
  const t = tensorOf(kernel, name)
  return t.asDeclared && t.structured.length === 0
}

/**
 * Returns a tensor from the values of its buffers, in storage order: dense, or coordinates with values if an axis is sparse. Padding is
 * dropped. The result has the buffer's fill value if it is not 0.
 */
export function readTensor(bound: Bound, name: string, values: ReadonlyMap<string, ValueArray>): Tensor {
  const { kernel } = bound
  const t = tensorOf(kernel, name)
  const { dtype, fill } = t.first
  const absent = fill === 0 ? {} : { fill }
  const extents = extentsOf(kernel, bound.params)
  const shape = t.axes.map((a) => extents.get(a) ?? 0)
  const isDense = t.structured.length === 0
  if (t.asDeclared) {
    const own = values.get(t.first.name)!
    if (isDense) {
      const { order } = t
      if (!order) return { kind: 'dense', shape, values: own, dtype }
      const stored = order.map((d) => shape[d]!)
      const inverse = order.map((_, d) => order.indexOf(d))
      return { kind: 'dense', shape, values: inOrder(own, dtype, stored, inverse), dtype }
    }
    return { ...toCoords(bound.storages.get(t.first.name)!, own, dtype), shape, ...absent }
  }
  const { columns, parts } = bound.route(name)
  const n = columns[0]!.length
  const out = newValues(dtype, n)
  for (const p of parts) {
    const own = values.get(p.buffer)!
    const count = p.elements?.length ?? n
    for (let s = 0; s < count; s++)
      out[p.elements ? p.elements[s]! : s] = own[p.positions ? p.positions[s]! : s]!
  }
  if (!isDense) return { kind: 'coords', shape, coords: columns, values: out, dtype, ...absent }
  return { kind: 'dense', shape, values: out, dtype }
}

export function bufferOf(t: CallerTensor, p: EntryList): Buffer1 {
  const b = t.buffers.find((x) => p.isOver(x.axes))
  invariant(b, `no buffer of ${t.name} is over the axes of one of its lists`)
  return b
}
