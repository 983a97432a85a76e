/** Interface of target languages; `targets/index.ts` lists them. */
import type { Kernel3 } from '../ir/statements/loops.ts'
import type { PrintedModule } from './module.ts'

/** Devices that run generated code. */
export const DEVICE_KINDS = ['cpu', 'webgpu', 'cuda'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

/** Target languages: the device that runs the code (`null`: only printed), and whether the language has 64-bit indices. */
export const LANGUAGES = {
  wgsl: { device: 'webgpu', wideIndices: false },
  cuda: { device: 'cuda', wideIndices: true },
  js: { device: 'cpu', wideIndices: true },
  c: { device: null, wideIndices: true },
} as const satisfies Readonly<
  Record<string, { readonly device: DeviceKind | null; readonly wideIndices: boolean }>
>
export type TargetName = keyof typeof LANGUAGES
export const TARGET_NAMES = Object.keys(LANGUAGES) as readonly TargetName[]

/** The target of a device. */
export const targetOf = ({ kind }: { readonly kind: DeviceKind }): TargetName =>
  TARGET_NAMES.find((t) => LANGUAGES[t].device === kind)!

/** Optional device features that generated code may use. */
export interface TextOptions {
  /** WGSL: f16 elements are stored as f16, not as 32-bit words. Default: only if instructions need it. */
  readonly f16?: boolean | undefined
  /** Expressions of type `index` have 64 bits (`Target.wideIndices`). */
  readonly wide?: boolean | undefined
}

export interface Target {
  /** Device whose default schedules apply. */
  readonly scheduleDevice: DeviceKind
  /** True if blocks run in parallel: before printing, loop nests without threads are distributed over blocks. */
  readonly parallel: boolean
  /** True if launches start a grid of blocks; otherwise an entry runs all blocks. */
  readonly grid: boolean
  /** File extension with the dot. */
  readonly extension: string
  /** Features common to all devices of the target, for lowering (`lower/pipeline.ts`, `LowerOptions`). */
  readonly lowering: { readonly lanes?: number; readonly promote?: boolean }
  /** True if arrays in shared memory with disjoint live ranges share storage. */
  readonly reusesShared: boolean
  readonly declared: DeclaredTexts
  /** Prints all launches of a plan. @throws SptError `emit/…` */
  readonly print: (plan: Kernel3, options: TextOptions) => PrintedModule[]
}

/** Capabilities that the source of declared instructions and memories can use in the language. */
export interface DeclaredTexts {
  /** Supports addresses of memory, and narrow values packed in words. */
  readonly addresses: boolean
  /** Names of requirements with their number of arguments; if absent, a requirement is a language extension. */
  readonly needs?: ReadonlyMap<string, number>
  /** Suggested replacement for requirements, in languages without requirements. */
  readonly alternative?: string
}
