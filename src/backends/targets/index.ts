/** All target languages by name, and the printing of plans for them (`emit`). */
import type { Kernel3 } from '../../ir/statements/loops.ts'
import type { PrintedModule } from '../module.ts'
import type { Target, TargetName, TextOptions } from '../target.ts'
import { C } from './c/index.ts'
import { CUDA } from './cuda/index.ts'
import { JS } from './js/index.ts'
import { WGSL } from './wgsl/index.ts'

export { TARGET_NAMES, type TargetName, targetOf } from '../target.ts'

export const TARGETS = { wgsl: WGSL, cuda: CUDA, js: JS, c: C } as const satisfies Readonly<
  Record<TargetName, Target>
>

/** A printed module: one text, one or more entry points. */
export interface ModuleText extends PrintedModule {
  readonly target: TargetName
}

/**
 * Prints all launches of a plan for a target: one module, or (WGSL) one for each launch.
 * @throws SptError `emit/…` for features that the target lacks
 */
export const emit = (plan: Kernel3, target: TargetName, options: TextOptions = {}): ModuleText[] =>
  TARGETS[target].print(plan, options).map((m) => ({ target, ...m }))
