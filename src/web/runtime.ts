/**
 * `sparsetile/runtime`: executes a plan (`docs/reference/plan.md`) with ready arrays, on WebGPU or the CPU. Without the compiler, and
 * without `eval`: pages may forbid it.
 * ```ts
 * const fn = await instantiate(plan, { device })
 * const { C } = await fn({ A, B, j_indptr, j_indices, m, d })
 * ```
 */
import { valueIn } from '../plan/interpret.ts'
import { type Plan, type PlanFamily, SCHEMA } from '../plan/schema.ts'
import type { GpuDeviceLike } from '../runtime/native-memory.ts'
import { type Binding, bindingOf, type Outputs } from './binding.ts'
import { cpuExecutor, type Functions } from './cpu.ts'
import { bindInputs, type Inputs, sizesOf } from './inputs.ts'
import type { Executor } from './memory.ts'
import { failWith, PlanError, reading } from './plan-error.ts'
import { gpuExecutor, requestDevice } from './webgpu.ts'

export type { TypedArray } from '../ir/values/arrays.ts'
export type { Plan, PlanBuffer, PlanFamily } from '../plan/schema.ts'
export type { Binding, Outputs } from './binding.ts'
export type { Functions } from './cpu.ts'
export type { Inputs } from './inputs.ts'
export { PlanError }

export interface InstantiateOptions {
  /** For plans of WebGPU: your own device (default: a new one with the features and limits that the plan needs). */
  readonly device?: GpuDeviceLike | undefined
  /** For plans of the CPU: the functions of its modules by name (default: the texts are imported, which some pages forbid). */
  readonly functions?: Functions | undefined
}

/**
 * A plan compiled for a device. A call binds the inputs, runs once and returns the outputs. `spt types` writes the types of the inputs
 * `I`, the outputs `O` and all arrays `A` of an imported plan.
 */
export interface Instance<I = Inputs, O = Outputs, A = Outputs> {
  (inputs: I): Promise<O>
  /** Checks the inputs, allocates memory and copies them. @throws PlanError `bind/…`, `plan/…`, `run/requirement`, `device/…` */
  bind(inputs: I): Promise<Binding<I, O, A>>
  readonly plan: Plan | PlanFamily
}

/**
 * Compiles a plan for a device.
 * @throws PlanError `plan/version`, `plan/malformed`, `api/unknown-option`, `device/absent`, `device/compile`,
 * `plan/missing-feature`, `plan/limit`
 */
export const instantiate = (plan: Plan | PlanFamily, options: InstantiateOptions = {}): Promise<Instance> =>
  reading(instanceOf(plan, options))

async function instanceOf(plan: Plan | PlanFamily, options: InstantiateOptions): Promise<Instance> {
  if (plan?.schema !== SCHEMA) failWith('plan/version', `the plan has the schema ${plan?.schema}`, SCHEMA)
  // Most pages have no family, and do not load the selection.
  const bound =
    'plans' in plan
      ? (await import('./family.ts')).binderOf(plan, (one) => instanceOf(one, options), {
          sizesOf,
          valueIn,
          failWith,
        })
      : await binderOf(plan, options)
  const bind = (inputs: Inputs): Promise<Binding> => reading(bound(inputs ?? {}))
  const call = async (inputs: Inputs): Promise<Outputs> => {
    const binding = await bind(inputs)
    try {
      await binding.run()
      return await binding.outputs()
    } finally {
      binding.free()
    }
  }
  return Object.assign(call, { bind, plan })
}

async function binderOf(plan: Plan, options: InstantiateOptions): Promise<Instance['bind']> {
  const { device, kernel } = plan
  if (plan.rounds) failWith('run/rounds', `${kernel} has rounds`)
  const known =
    { cpu: 'functions', webgpu: 'device', cuda: '' }[device] ||
    failWith('plan/other-device', `the plan is for ${device}`, 'a plan for webgpu or cpu')
  for (const name in options)
    if (name !== known && options[name as 'device'])
      failWith('api/unknown-option', `${kernel} on ${device} has no option ${name}`, known)
  const executor: Executor =
    device === 'cpu'
      ? await cpuExecutor(plan, options.functions)
      : await gpuExecutor(plan, (options.device as GPUDevice | undefined) ?? (await requestDevice(plan)))
  return async (inputs) => {
    const bound = bindInputs(plan, inputs)
    return bindingOf(plan, bound, await executor(bound))
  }
}
