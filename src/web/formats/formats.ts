/**
 * `sparsetile/runtime/formats`: executes a plan with tensors, which are converted to its formats in the page.
 * ```ts
 * import { csr, dense, instantiate } from 'sparsetile/runtime/formats'
 * const fn = await instantiate(plan, { device })
 * const { C } = await fn({ A: csr([m, n], indptr, indices, values), B: dense([n, d], features) })
 * ```
 */
import {
  checkShape,
  checkTensor,
  coordinatesOf,
  expectArgument,
  isRecord,
} from '../../api/inputs/argument-checks.ts'
import { type Bindable, coords, type Integers, type Values } from '../../api/inputs/tensors.ts'
import { byName } from '../../ast/by-name.ts'
import { runSync } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { checkIndptr } from '../../levels/bind.ts'
import { readKernel } from '../../plan/binding-codecs.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { callerTensors } from '../../run/bind/bind-plan.ts'
import { bindingSteps } from '../../run/bind/binding-steps.ts'
import type { FormatCode } from '../../run/bind/format-code.ts'
import { buffersOf, readTensor } from '../../run/bind/results/gather-results.ts'
import type { Bound } from '../../run/bind/types.ts'
import type { CoordTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import type { Binding } from '../binding.ts'
import { isOutput } from '../inputs.ts'
import { type Instance, type InstantiateOptions, instantiate as instantiateArrays } from '../runtime.ts'

export { coords, dense, stored } from '../../api/inputs/tensors.ts'
export type { CoordTensor, DenseTensor, StoredTensor, Tensor } from '../../storage/tensor.ts'
export type { InstantiateOptions, Plan } from '../runtime.ts'
export { PlanError } from '../runtime.ts'

/**
 * Tensors, sizes and scalars by name. Sizes that follow from shapes can be left out. Arrays and lists of numbers are dense tensors, or
 * offsets of a ragged axis.
 */
export type TensorInputs = Readonly<Record<string, Bindable | number | boolean>>

export interface TensorBinding<O = Record<string, Tensor>>
  extends Pick<Binding, 'run' | 'free' | 'record' | 'buffer'> {
  /** An output in coordinates, or dense in row-major order. */
  get<N extends string & keyof O>(name: N): Promise<O[N]>
  /** Replaces values of an input, which are copied before the call returns; the structure stays. @throws SptError `bind/…` */
  set(name: string, values: Bindable): Promise<void>
  /** The arrays of the plan's formats, by buffer name. */
  readonly arrays: ReadonlyMap<string, ValueArray>
}

/** A plan compiled for a device. A call converts the tensors, runs once and returns the outputs. */
export interface TensorInstance<I = TensorInputs, O = Record<string, Tensor>> {
  (inputs: I): Promise<O>
  /** Converts tensors to the plan's formats. @throws SptError `bind/…`, `format/…`, and PlanError as `sparsetile/runtime` */
  bind(inputs: I): Promise<TensorBinding<O>>
  readonly plan: Plan | PlanFamily
}

/**
 * A matrix by offsets of its rows, column indices and values; without values, all are 1.
 * @throws SptError `tensor/…`, `bind/indptr-…` for offsets that do not start at 0, fall, or do not end at the number of indices
 */
export function csr(
  shape: readonly [number, number],
  indptr: Integers,
  indices: Integers,
  values: Values | null = null,
  dtype?: Dtype,
): CoordTensor {
  const offsets = coordinatesOf(indptr, 'indptr')
  const columns = coordinatesOf(indices, 'indices')
  checkShape(shape)
  checkIndptr({ name: 'columns' }, offsets, shape[0], columns.length)
  const rows = new Int32Array(columns.length)
  for (let i = 0; i < shape[0]; i++) rows.fill(i, offsets[i], offsets[i + 1])
  return coords(shape, [rows, columns], values, dtype)
}

/** A plan with the declarations by which tensors are bound. */
interface Prepared {
  readonly plan: Plan
  readonly kernel: Kernel1
  readonly formats: FormatCode | null
  readonly fn: Instance
}

async function prepare(plan: Plan, options: InstantiateOptions): Promise<Prepared> {
  const fn = await instantiateArrays(plan, options)
  const kernel = readKernel(plan)
  const { FORMAT_CODE } =
    kernel.reformats.length > 0 ? await import('../../run/bind/format-code.ts') : { FORMAT_CODE: null }
  return { plan, kernel, formats: FORMAT_CODE, fn }
}

/**
 * Compiles a plan for a device, or a family of plans, which selects by sizes and statistics of the tensors.
 * @throws PlanError as `sparsetile/runtime`, SptError `plan/malformed`
 */
export async function instantiate(
  plan: Plan | PlanFamily,
  options: InstantiateOptions = {},
): Promise<TensorInstance> {
  const prepared = new Map<Plan, Promise<Prepared>>()
  const preparedFor = (one: Plan): Promise<Prepared> =>
    getOrAddPromise(prepared, one, () => prepare(one, options))
  let select = (_: TensorInputs): Plan => plan as Plan
  if (plan && 'plans' in plan) select = (await import('./family-selection.ts')).selectorOf(plan)
  else await preparedFor(plan)
  const bind = async (inputs: TensorInputs): Promise<TensorBinding> => {
    const chosen = await preparedFor(select(inputs))
    const { plan: one, kernel, fn } = chosen
    const statistics = plan === one ? {} : (plan as PlanFamily).choose.statistics
    let bound = await boundOf(chosen, inputs, statistics)
    const known = new Set([one.buffers, one.packed ?? [], one.sizes, one.scalars].flat().map((x) => x.name))
    const given = [...bound.arrays, ...bound.params].filter(([name]) => known.has(name))
    const binding = await fn.bind(Object.fromEntries(given))
    return {
      ...binding,
      get arrays() {
        return bound.arrays
      },
      async get(name) {
        const values = new Map<string, ValueArray>()
        for (const b of buffersOf(kernel, name)) values.set(b, await binding.get(b))
        return readTensor(bound, name, values)
      },
      async set(name, values) {
        const copy = structuredClone(values)
        const { updated } = await import('./input-values.ts')
        const next = updated(bound, name, copy)
        bound = next.bound
        for (const b of next.buffers) binding.set(b, bound.arrays.get(b)!)
      },
    }
  }
  const call = async (inputs: TensorInputs): Promise<Record<string, Tensor>> => {
    const { kernel } = await preparedFor(select(inputs))
    const binding = await bind(inputs)
    try {
      await binding.run()
      const out: Record<string, Tensor> = {}
      for (const { name, first } of callerTensors(kernel))
        if (isOutput(first)) out[name] = await binding.get(name)
      return out
    } finally {
      binding.free()
    }
  }
  return Object.assign(call, { bind, plan })
}

async function boundOf(
  { kernel, formats }: Prepared,
  inputs: TensorInputs,
  statistics: object,
): Promise<Bound> {
  expectArgument(
    isRecord(inputs),
    'the object of inputs',
    inputs,
    'tensors and sizes by name: { A, B, d: 32 }',
  )
  const own = Object.entries(inputs).filter(([name]) => !(name in statistics))
  const tensors = byName<Tensor>()
  const params = byName<number>()
  const others = own.filter(([name, x]) => {
    if (typeof x === 'number') params[name] = x
    else if (isRecord(x)) {
      checkTensor(name, x)
      tensors[name] = x
    } else return true
    return false
  })
  // Arrays and lists without shapes are rare in pages, and so is the code that converts them.
  const values =
    others.length > 0
      ? (await import('./input-values.ts')).valuesOf(kernel, Object.fromEntries(own))
      : { tensors, params }
  const hasArrays = Object.values(values.tensors).some((t) => t.kind === 'stored')
  const { RARE_INPUTS } = hasArrays ? await import('./input-values.ts') : { RARE_INPUTS: null }
  return runSync(bindingSteps(kernel, values, {}, RARE_INPUTS, formats))
}
