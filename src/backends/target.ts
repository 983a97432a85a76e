/** What a language is to the rest of the compiler: `targets/index.ts` has one of these for each. */
import type { Plan } from '../ir/loops.ts'
import type { PrintedModule } from './module.ts'

/** What runs texts. */
export const DEVICE_KINDS = ['cpu', 'webgpu', 'cuda'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

/** What a device has that the texts for it may use. */
export interface TextOptions {
  /** WGSL: f16 in memory is f16, and not a word of 32 bits. Left out: where instructions need it. */
  readonly f16?: boolean | undefined
}

export interface Target {
  /** The device that runs its texts; nothing for a language that is only printed. */
  readonly device: DeviceKind | null
  /** The device whose schedules are for it, where the user names none. */
  readonly scheduledAs: DeviceKind
  /** Blocks run side by side: nests that are bound to no threads are spread over blocks before they are printed. */
  readonly parallel: boolean
  /** Launches start a grid of blocks; elsewhere an entry runs all of them. */
  readonly grid: boolean
  /** Of files, with the point. */
  readonly extension: string
  /** What every device of the target has that plans for it may use (`lower/pipeline.ts`, `LowerOptions`). */
  readonly lowering: { readonly lanes?: number; readonly promote?: boolean }
  /** True if arrays in shared memory with disjoint live ranges share storage. */
  readonly reusesShared: boolean
  readonly declared: DeclaredTexts
  /** Prints all launches of a plan. @throws SptError `emit/…` */
  readonly print: (plan: Plan, options: TextOptions) => PrintedModule[]
}

/** What texts of declared instructions and memories can say in the language. */
export interface DeclaredTexts {
  /** Whether they see memory by address, and narrow values packed in words. */
  readonly addresses: boolean
  /** What a text can need, by name, with how many arguments; without any, an extension of the language. */
  readonly needs?: ReadonlyMap<string, number>
  /** What to write instead where a text can need nothing by name. */
  readonly instead?: string
}
