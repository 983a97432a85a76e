/**
 * `sparsetile/runtime/formats`: executes a plan with tensors, which are converted to its formats in the page.
 * ```ts
 * import { csr, dense, instantiate } from 'sparsetile/runtime/formats'
 * const fn = await instantiate(plan, { device })
 * const { C } = await fn({ A: csr([m, n], indptr, indices, values), B: dense([n, d], features) })
 * ```
 */
import { runSync } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { readKernel } from '../../plan/binding-codecs.ts'
import type { Plan } from '../../plan/schema.ts'
import { callerTensors } from '../../run/bind/bind-plan.ts'
import { bindingSteps } from '../../run/bind/binding-steps.ts'
import { buffersOf, readTensor } from '../../run/bind/results/gather-results.ts'
import type { Bound } from '../../run/bind/types.ts'
import type { CoordTensor, DenseTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import type { Binding } from '../binding.ts'
import { type InstantiateOptions, instantiate as instantiateArrays } from '../runtime.ts'

export type { CoordTensor, DenseTensor, StoredTensor, Tensor } from '../../storage/tensor.ts'
export type { InstantiateOptions, Plan } from '../runtime.ts'
export { PlanError } from '../runtime.ts'

/** Tensors, sizes and scalars by name. Sizes that follow from shapes can be left out. */
export type TensorInputs = Readonly<Record<string, Tensor | number | boolean>>

export interface TensorBinding<O = Record<string, Tensor>>
  extends Pick<Binding, 'run' | 'free' | 'record' | 'buffer'> {
  /** An output in coordinates, or dense in row-major order. */
  get<N extends string & keyof O>(name: N): Promise<O[N]>
  /** The arrays of the plan's formats, by buffer name. */
  readonly arrays: ReadonlyMap<string, ValueArray>
}

/** A plan compiled for a device. A call converts the tensors, runs once and returns the outputs. */
export interface TensorInstance<I = TensorInputs, O = Record<string, Tensor>> {
  (inputs: I): Promise<O>
  /** Converts tensors to the plan's formats. @throws SptError `bind/…`, `format/…`, and PlanError as `sparsetile/runtime` */
  bind(inputs: I): Promise<TensorBinding<O>>
  readonly plan: Plan
}

/** A row-major tensor. Type: f32 unless given; f16 and bf16 as bits. */
export const dense = (shape: readonly number[], values: ValueArray, dtype: Dtype = 'f32'): DenseTensor => ({
  kind: 'dense',
  shape,
  values,
  dtype,
})

/** Element e is at `coords[0][e], coords[1][e], …`, in any order. Without values, all are 1. */
export const coords = (
  shape: readonly number[],
  columns: readonly Int32Array[],
  values: ValueArray | null = null,
  dtype: Dtype = 'f32',
): CoordTensor => ({ kind: 'coords', shape, coords: columns, values, dtype })

/** A matrix by offsets of its rows, column indices and values. */
export function csr(
  shape: readonly [number, number],
  indptr: Int32Array,
  indices: Int32Array,
  values: ValueArray | null = null,
  dtype: Dtype = 'f32',
): CoordTensor {
  const rows = new Int32Array(indices.length)
  for (let i = 0; i < shape[0]; i++) rows.fill(i, indptr[i], indptr[i + 1])
  return coords(shape, [rows, indices], values, dtype)
}

/** Compiles a plan for a device. @throws PlanError as `sparsetile/runtime`, SptError `plan/malformed` */
export async function instantiate(plan: Plan, options: InstantiateOptions = {}): Promise<TensorInstance> {
  const fn = await instantiateArrays(plan, options)
  const kernel = readKernel(plan)
  const outputs = callerTensors(kernel).filter((t) => t.first.role === 'out' || t.first.role === 'inout')
  const bind = async (inputs: TensorInputs): Promise<TensorBinding> => {
    const bound = await boundOf(kernel, inputs)
    const known = new Set(
      [...plan.buffers, ...(plan.packed ?? []), ...plan.sizes, ...plan.scalars].map((x) => x.name),
    )
    const given = [...bound.arrays, ...bound.params].filter(([name]) => known.has(name))
    const binding = await fn.bind(Object.fromEntries(given))
    const get = async (name: string): Promise<Tensor> => {
      const values = new Map<string, ValueArray>()
      for (const b of buffersOf(kernel, name)) values.set(b, await binding.get(b))
      return readTensor(bound, name, values)
    }
    return { ...binding, get, arrays: bound.arrays }
  }
  const call = async (inputs: TensorInputs): Promise<Record<string, Tensor>> => {
    const binding = await bind(inputs)
    try {
      await binding.run()
      const out: Record<string, Tensor> = {}
      for (const { name } of outputs) out[name] = await binding.get(name)
      return out
    } finally {
      binding.free()
    }
  }
  return Object.assign(call, { bind, plan })
}

async function boundOf(kernel: Kernel1, inputs: TensorInputs): Promise<Bound> {
  const tensors: Record<string, Tensor> = {}
  const params: Record<string, number> = {}
  for (const [name, value] of Object.entries(inputs))
    if (typeof value === 'object') tensors[name] = value
    else params[name] = Number(value)
  const hasArrays = Object.values(tensors).some((t) => t.kind === 'stored')
  const { RARE_INPUTS } = hasArrays ? await import('../../run/bind/rare-inputs.ts') : { RARE_INPUTS: null }
  return runSync(bindingSteps(kernel, { tensors, params }, {}, RARE_INPUTS))
}
