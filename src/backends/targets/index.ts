/** All target languages by name, and the printing of plans for them (`emit`). */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel3 } from '../../ir/statements/loops.ts'
import type { PrintedModule } from '../module.ts'
import { DEVICE_KINDS, type DeviceKind, type Target, type TextOptions } from '../target.ts'
import { C } from './c/index.ts'
import { CUDA } from './cuda/index.ts'
import { JS } from './js/index.ts'
import { WGSL } from './wgsl/index.ts'

export const TARGETS = { wgsl: WGSL, cuda: CUDA, js: JS, c: C } as const satisfies Readonly<
  Record<string, Target>
>
export type TargetName = keyof typeof TARGETS
export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[]

/** The target of each device; checked at start to be unique. */
const BY_DEVICE: ReadonlyMap<DeviceKind, TargetName> = new Map(
  DEVICE_KINDS.map((kind) => {
    const [name, ...furtherNames] = TARGET_NAMES.filter((t) => TARGETS[t].device === kind)
    invariant(name && furtherNames.length === 0, `one target is for ${kind}`)
    return [kind, name]
  }),
)

/** The target of a device. */
export const targetOf = ({ kind }: { readonly kind: DeviceKind }): TargetName => BY_DEVICE.get(kind)!

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
