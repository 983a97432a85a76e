/** Plans that were read from JSON, on a device. */
import { isFamily, readFamily } from '../../plan/family-codec.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import { readPlan } from '../../plan/read.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { loadOn } from '../../run/compile/compiled-program.ts'
import type { Device } from '../../runtime/device.ts'
import { Built } from '../built/built.ts'
import { CompiledCode } from '../built/code.ts'
import { checkDevice } from '../inputs/argument-checks.ts'
import { LoadedFamily } from './loaded-family.ts'

/**
 * Loads a plan or a family of plans for a device: the JSON of `spt emit --target plan` or of `fn.plan`, parsed. Needs no compiler,
 * and therefore rejects calls that need the kernel, such as `verify` and `explain` (`plan/no-kernel`).
 * ```ts
 * const fn = await loadPlan(JSON.parse(text), device)
 * const { C } = await fn({ A, B })
 * ```
 * Throws SptError `plan/…` if the plan is malformed, was changed, or is for another device; `device/compile`.
 */
export async function loadPlan(plan: Plan | PlanFamily, device: Device): Promise<Built> {
  checkDevice(device)
  const codeOf = async (p: LaunchPlan) => new CompiledCode(null, await loadOn(device, p))
  if (!isFamily(plan)) return new Built(device, { code: await codeOf(readPlan(plan)) })
  const family = readFamily(plan)
  return new Built(device, { loaded: new LoadedFamily(family, await Promise.all(family.plans.map(codeOf))) })
}
