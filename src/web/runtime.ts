/**
 * `sparsetile/runtime`: executes a plan (`docs/reference/plan.md`) with ready arrays, on WebGPU or the CPU. Without the compiler, and
 * without `eval`: pages may forbid it.
 * ```ts
 * const fn = await instantiate(plan, { device })
 * const { C } = await fn({ A, B, j_indptr, j_indices, m, d })
 * ```
 */
import { type Plan, type PlanFamily, SCHEMA } from '../plan/schema.ts'
import { type Binding, bindingOf, type Outputs } from './binding.ts'
import { cpuExecutor, type Functions } from './cpu.ts'
import { bindInputs, type Inputs, sizesOf } from './inputs.ts'
import type { Executor } from './memory.ts'
import { failWith, PlanError } from './plan-error.ts'
import { evaluate } from './sizes.ts'
import { gpuExecutor, requestDevice } from './webgpu.ts'

export type { TypedArray } from '../ir/values/arrays.ts'
export type { Plan, PlanBuffer, PlanFamily } from '../plan/schema.ts'
export type { Binding, Outputs } from './binding.ts'
export type { Functions } from './cpu.ts'
export type { Inputs } from './inputs.ts'
export { PlanError }

export interface InstantiateOptions {
  /** For plans of WebGPU: your own device (default: a new one with the features and limits that the plan needs). */
  readonly device?: GPUDevice | undefined
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
 * @throws PlanError `plan/version`, `device/absent`, `device/compile`, `plan/missing-feature`, `plan/limit`
 */
export async function instantiate(
  plan: Plan | PlanFamily,
  options: InstantiateOptions = {},
): Promise<Instance> {
  if (plan?.schema !== SCHEMA) failWith('plan/version', `the plan has the schema ${plan?.schema}`, SCHEMA)
  const executors = new Map<Plan, Promise<Executor>>()
  const executorOf = (one: Plan): Promise<Executor> => {
    const executor = executors.get(one) ?? compile(one, options)
    executors.set(one, executor)
    return executor
  }
  if (!('plans' in plan)) await executorOf(plan)
  const bind = async (inputs: Inputs): Promise<Binding> => {
    const selected = 'plans' in plan ? select(plan, inputs) : plan
    const bound = bindInputs(selected, inputs, 'plans' in plan ? Object.keys(plan.choose.statistics) : [])
    const executor = await executorOf(selected)
    return bindingOf(selected, bound, await executor(bound))
  }
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

/** The first plan whose conditions hold for the sizes and statistics (`'nnz(A)'`) in the inputs. */
function select({ kernel, choose, plans }: PlanFamily, inputs: Inputs): Plan {
  const sizes = sizesOf(plans[0]!, inputs)
  const branch = choose.branches.find((b) => b.when.every((e) => evaluate(e, sizes) > 0))
  return (branch && plans[branch.plan]) ?? failWith('choose/no-match', `no plan of ${kernel} for these sizes`)
}

async function compile(plan: Plan, { device, functions }: InstantiateOptions): Promise<Executor> {
  if (plan.device === 'cpu') return cpuExecutor(plan, functions)
  if (plan.device !== 'webgpu')
    failWith('plan/other-device', `the plan is for ${plan.device}`, 'a plan for webgpu or cpu')
  return gpuExecutor(plan, device ?? (await requestDevice(plan)))
}
