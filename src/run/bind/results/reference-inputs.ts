/** Inputs of the reference, and its results. `kernel` is the kernel as written, without formats. */

import { byName } from '../../../ast/by-name.ts'
import { SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { chainTo, repeatsCoordinates } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { RefInputs, RefOptions, RefOutputs, RefStructure, RefTensor } from '../../../reference/index.ts'
import { reference } from '../../../reference/index.ts'
import { expandTree } from '../../../storage/entries/stored-coords.ts'
import { separatesDuplicates } from '../../../storage/storage.ts'
import { decoder, type ValueArray } from '../../../storage/tensor.ts'
import { bindPlan, callerTensor, isStructured, storedAxis } from '../bind-plan.ts'
import type { Bound } from '../types.ts'

export function referenceInputs(kernel: Kernel1, bound: Bound): RefInputs {
  const buffers = byName<RefTensor>()
  const structure = byName<RefStructure[]>()
  const { axes } = bindPlan(kernel)
  for (const [name, t] of bound.dense) buffers[name] = numbers(t.values!, t.dtype)
  const add = (axis: string, s: RefStructure): void => {
    structure[axis] = [...(structure[axis] ?? []), s]
  }
  for (const s of bound.sources) {
    if (callerTensor(bound.kernel, s.name)?.first.copyOf !== undefined) continue
    const buffer = kernel.buffers.find((b) => b.name === s.name)
    // Structure steps may have given a dense tensor new axes, which the kernel as written does not have.
    const over = buffer?.axes ?? s.axes
    const duplicates = separatesDuplicates(over.map((a) => storedAxis(axes, a))) ? 'keep' : 'sum'
    if (buffer && (buffer.role === 'in' || buffer.role === 'inout')) {
      const values = s.tensor?.values ? numbers(s.tensor.values, s.tensor.dtype) : null
      buffers[s.name] = { coords: [...s.columns], values, duplicates }
    } else {
      const axis = buffer ? leafOf(kernel, s.axes) : s.name
      if (axis !== undefined)
        add(axis, { coords: chainTo(axes, axis).map((a) => s.columns[s.axes.indexOf(a)]!), duplicates })
    }
  }
  for (const name of bound.ready.keys())
    for (const { axis, coords } of storedPrefixes(kernel, bound, name)) add(axis, { coords })
  const params = byName(kernel.params.map((p) => [p.name, bound.params.get(p.name) ?? 0]))
  return { params, buffers, structure }
}

/** Coordinates of ready-made arrays that have no children. No element contains them, but iterations over the outer axes visit them. */
function storedPrefixes(
  kernel: Kernel1,
  bound: Bound,
  name: string,
): readonly { readonly axis: string; readonly coords: Int32Array[] }[] {
  const storage = bound.storages.get(name)
  const buffer = kernel.buffers.find((b) => b.name === name)
  // With a format, iterations visit the axes of its parts instead.
  if (!storage || !buffer || buffer.axes.join() !== storage.axes.map((a) => a.name).join()) return []
  const { axes } = bindPlan(kernel)
  return storage.trees.flatMap((tree) =>
    tree.flatMap(({ axis: { name: axis } }, depth) => {
      const prefix = tree.slice(0, depth + 1)
      const elements = depth + 1 === tree.length && storage.trees.length === 1
      // Duplicates on nonunique axes are given by the elements only.
      if (
        elements ||
        !isStructured(axes, axis) ||
        prefix.some((l) => repeatsCoordinates(axes.get(l.axis.name)!))
      )
        return []
      return [{ axis, coords: [...expandTree(prefix).coords] }]
    }),
  )
}

const leafOf = (kernel: Kernel1, over: readonly string[]): string | undefined => {
  const { axes } = bindPlan(kernel)
  return over.findLast((a) => isStructured(axes, a))
}

/** Decodes values to numbers without rounding; the reference rounds them to the types of their buffers. */
function numbers(values: ValueArray, dtype: Dtype): ArrayLike<number> {
  const read = decoder(dtype)
  return read ? new Float64Array(values.length).map((_, e) => read(values[e]!)) : values
}

/** The reference within the first of `extents` that suffices, or `null`. Arguments are data, for another thread. */
export function expectedWithin({
  kernel,
  inputs,
  extents,
}: {
  readonly kernel: Kernel1
  readonly inputs: RefInputs
  readonly extents: readonly RefOptions[]
}): { readonly extent: RefOptions; readonly outputs: RefOutputs } | null {
  for (const extent of extents) {
    try {
      return { extent, outputs: reference(kernel, inputs, extent) }
    } catch (e) {
      if (!(e instanceof SptError) || e.code !== 'reference/too-long') throw e
    }
  }
  return null
}

/** Runs the reference on the bound data, or on a sample if `options` request it and sampling is sound. */
export const expectedOf = (source: Kernel1, bound: Bound, options: RefOptions = {}): RefOutputs =>
  reference(source, referenceInputs(source, bound), { maxRounds: bound.maxRounds, ...options })
