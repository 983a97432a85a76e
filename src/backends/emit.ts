/** A plan → the texts of its launches, with the signature of each entry: everything that a device needs to run it. */
import type { Plan } from '../ir/loops.ts'
import type { PrintedModule } from './module.ts'
import type { TextOptions } from './target.ts'
import { TARGETS, type TargetName } from './targets/index.ts'

/** A printed module: one text, one or more entry points. */
export interface ModuleText extends PrintedModule {
  readonly target: TargetName
}

/**
 * Prints all launches of a plan for a target: one module, or (WGSL) one for each launch.
 * @throws SptError `emit/…` what the target does not have
 */
export const emit = (plan: Plan, target: TargetName, options: TextOptions = {}): ModuleText[] =>
  TARGETS[target].print(plan, options).map((m) => ({ target, ...m }))
