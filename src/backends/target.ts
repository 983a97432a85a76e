/** Interface of target languages; `targets/index.ts` lists them. */
import type { Plan } from '../ir/loops.ts'
import type { PrintedModule } from './module.ts'

/** Devices that run generated code. */
export const DEVICE_KINDS = ['cpu', 'webgpu', 'cuda'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

/** Optional device features that generated code may use. */
export interface TextOptions {
  /** WGSL: f16 in memory is f16, and not a word of 32 bits. Left out: where instructions need it. */
  readonly f16?: boolean | undefined
}

export interface Target {
  /** The device that runs its texts; nothing for a language that is only printed. */
  readonly device: DeviceKind | null
  /** Device whose default schedules apply if the user names none. */
  readonly scheduledAs: DeviceKind
  /** True if blocks run in parallel: loop nests without threads are spread over blocks before printing. */
  readonly parallel: boolean
  /** Launches start a grid of blocks; elsewhere an entry runs all of them. */
  readonly grid: boolean
  /** File extension, with the point. */
  readonly extension: string
  /** Features common to all devices of the target, for lowering (`lower/pipeline.ts`, `LowerOptions`). */
  readonly lowering: { readonly lanes?: number; readonly promote?: boolean }
  /** True if arrays in shared memory with disjoint live ranges share storage. */
  readonly reusesShared: boolean
  readonly declared: DeclaredTexts
  /** Prints all launches of a plan. @throws SptError `emit/…` */
  readonly print: (plan: Plan, options: TextOptions) => PrintedModule[]
}

/** Capabilities that the source of declared instructions and memories can use in the language. */
export interface DeclaredTexts {
  /** Supports addresses of memory, and narrow values packed in words. */
  readonly addresses: boolean
  /** Names of requirements with their number of arguments; if absent, a requirement is a language extension. */
  readonly needs?: ReadonlyMap<string, number>
  /** Replacement suggested for requirements, in languages that have none. */
  readonly instead?: string
}
