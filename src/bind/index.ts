/**
 * Binding: from values by name to the arrays a plan runs on. Everything that data can get wrong is found here,
 * before anything is allocated on a device. The caller's arrays are never written.
 */
import { fail, SptError } from '../ast/diagnostic.ts'
import { scatterValues } from '../formats/scatter.ts'
import type { Tensor, ValueArray } from '../formats/tensor.ts'
import { storedValues } from '../formats/validate.ts'
import { convert, filled } from '../formats/values.ts'
import { countOf, hasIndices, hasIndptr, indicesOf, indptrOf, isStored } from '../ir/axis.ts'
import type { Buffer1, Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, callerAxesOf, isStructured } from './axes.ts'
import { bindParams } from './sizes.ts'
import { extentsOf, randomSources, sourceOf } from './sources.ts'
import { buildStructure } from './structure.ts'
import type { Bound, Inputs, Source } from './types.ts'

export type { Bound, Inputs, Source } from './types.ts'

/**
 * Binds values to a (scheduled) kernel.
 * @throws SptError `bind/…`: missing sizes and buffers, shapes and types that differ, ready-made arrays that break
 * an axis' promises, structures that disagree, more than 2^31 - 1 elements.
 */
export function bindInputs(kernel: Kernel1, inputs: Inputs): Bound {
  const start = performance.now()
  const tensors = new Map(Object.entries(inputs.tensors ?? {}))
  const params = bindParams(kernel, tensors, new Map(Object.entries(inputs.params ?? {})))
  const { dense, ready, sources } = sort(kernel, tensors, params)
  requireInputs(kernel, tensors, inputs.seed)
  if (inputs.seed !== undefined) {
    const made = randomSources(
      kernel,
      [...sources, ...[...ready].map(([name, t]) => sourceOf(kernel, name, t, params))],
      dense,
      params,
      inputs.seed,
    )
    sources.push(...made.sources)
    for (const [name, t] of made.dense) dense.set(name, t)
  }
  const extents = extentsOf(kernel, params)
  const structure = buildStructure(kernel, sources, ready, params, extents)
  const arrays = new Map<string, ValueArray>()
  for (const a of kernel.axes) {
    if (!isStored(a)) continue
    const level = structure.levels.get(a.name)
    if (!level) continue
    if (hasIndptr(a)) params.set(countOf(a.name), level.positions)
    if (
      a.kind === 'sparse_fixed' &&
      a.width.kind === 'var' &&
      level.width !== null &&
      !params.has(a.width.name)
    )
      params.set(a.width.name, level.width)
    if (hasIndptr(a) && level.indptr) arrays.set(indptrOf(a.name), level.indptr)
    if (hasIndices(a) && level.indices) arrays.set(indicesOf(a.name), level.indices)
  }
  for (const b of kernel.buffers) {
    if (b.role !== 'in' && b.role !== 'inout') continue
    const storage = structure.storages.get(b.name)!
    const bound = dense.get(b.name) ?? ready.get(b.name)
    if (bound?.kind === 'dense') arrays.set(b.name, denseValues(b, bound))
    else if (bound?.kind === 'stored')
      arrays.set(b.name, convert(storedValues(storage, bound, b.fill), bound.dtype, b.dtype))
    else {
      const source = sources.find((s) => s.name === b.name)
      const tensor = source?.tensor
      if (source === undefined || tensor?.kind !== 'coords')
        arrays.set(b.name, filled(b.dtype, storage.size, b.fill))
      else {
        const columns = structure.columns.get(source)!
        const coords = b.axes.map((a) => columns.get(a)!)
        arrays.set(
          b.name,
          scatterValues(storage, { coords, values: tensor.values, dtype: tensor.dtype }, b.dtype, b.fill),
        )
      }
    }
  }
  for (const p of kernel.params) if (!params.has(p.name)) params.set(p.name, 0)
  let all: readonly Source[] | undefined
  return {
    kernel,
    params,
    storages: structure.storages,
    arrays,
    sources: () => {
      all ??= [...sources, ...[...ready].map(([name, t]) => sourceOf(kernel, name, t, params))]
      return all
    },
    dense,
    buildTime: performance.now() - start,
  }
}

/** Which way each bound tensor goes: dense as it is, ready-made arrays as they are, the rest by coordinates. */
function sort(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  params: ReadonlyMap<string, number>,
): { dense: Map<string, Tensor>; ready: Map<string, Tensor>; sources: Source[] } {
  const axes = allAxesOf(kernel)
  const dense = new Map<string, Tensor>()
  const ready = new Map<string, Tensor>()
  const sources: Source[] = []
  for (const [name, tensor] of tensors) {
    const buffer = kernel.buffers.find((b) => b.name === name)
    const asDeclared = buffer && callerAxesOf(kernel, buffer).join() === buffer.axes.join()
    const structured = buffer ? callerAxesOf(kernel, buffer).some((a) => isStructured(axes, a)) : true
    if (
      buffer &&
      (buffer.role === 'in' || buffer.role === 'inout') &&
      asDeclared &&
      !structured &&
      tensor.kind === 'dense'
    )
      dense.set(name, tensor)
    else if (buffer && asDeclared && tensor.kind === 'stored') ready.set(name, tensor)
    else sources.push(sourceOf(kernel, name, tensor, params))
  }
  return { dense, ready, sources }
}

function requireInputs(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  seed: number | undefined,
): void {
  if (seed !== undefined) return
  const missing = kernel.buffers.filter((b) => b.role === 'in' && !tensors.has(b.name))
  if (missing.length > 0)
    throw new SptError(
      missing.map((b) => ({
        code: 'bind/missing-buffer',
        message: `buffer ${b.name} of kernel ${kernel.name} is not bound`,
        ...(b.span ? { span: b.span } : {}),
        expected: `a tensor over [${callerAxesOf(kernel, b).join(', ')}]`,
        hint: `bind ${b.name}, or give a seed for random values`,
      })),
    )
}

function denseValues(b: Buffer1, t: Extract<Tensor, { kind: 'dense' }>): ValueArray {
  const size = t.shape.reduce((a, x) => a * x, 1)
  if (t.values.length !== size)
    fail({
      code: 'bind/values-length',
      message: `${b.name} has ${t.values.length} values for shape [${t.shape.join(', ')}]`,
      expected: `${size} values`,
      hint: 'give the values in row-major order',
    })
  return t.dtype === b.dtype ? t.values : convert(t.values, t.dtype, b.dtype)
}
