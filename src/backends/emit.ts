/** Prints a plan for a target: source of its launches, and the signature of each entry. */
import type { Plan } from '../ir/statements/loops.ts'
import type { PrintedModule } from './module.ts'
import type { TextOptions } from './target.ts'
import { TARGETS, type TargetName } from './targets/index.ts'

/** A printed module: one text, one or more entry points. */
export interface ModuleText extends PrintedModule {
  readonly target: TargetName
}

/**
 * Prints all launches of a plan for a target: one module, or (WGSL) one for each launch.
 * @throws SptError `emit/…` for features that the target lacks
 */
export const emit = (plan: Plan, target: TargetName, options: TextOptions = {}): ModuleText[] =>
  TARGETS[target].print(plan, options).map((m) => ({ target, ...m }))
