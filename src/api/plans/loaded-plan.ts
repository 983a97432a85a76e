/** Plans that were read from JSON, on a device. */
import { readPlan } from '../../plan/read.ts'
import type { Plan } from '../../plan/schema.ts'
import { loadOn } from '../../run/compile/compiled-program.ts'
import type { Device } from '../../runtime/device.ts'
import { Built } from '../built/built.ts'
import { CompiledCode } from '../built/code.ts'
import { checkDevice } from '../inputs/argument-checks.ts'

/**
 * Loads a plan for a device: the JSON of `spt emit --target plan` or of `compiled.plan`, parsed. Needs no compiler, and therefore
 * rejects calls that need the kernel, such as `verify` and `explain` (`plan/no-kernel`).
 * ```ts
 * const fn = await loadPlan(JSON.parse(text), device)
 * const { C } = await fn({ A, B })
 * ```
 * Throws SptError `plan/…` if the plan is malformed, was changed, or is for another device; `device/compile`.
 */
export async function loadPlan(plan: Plan, device: Device): Promise<Built> {
  checkDevice(device)
  return new Built(device, { code: new CompiledCode(null, await loadOn(device, readPlan(plan))) })
}
