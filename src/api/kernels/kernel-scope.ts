import type { Choice, Named, Schedule, Space } from '../../elaborate/index.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { StageObserver } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/launch-spans.ts'
import type { Declarations } from './instruction-lookup.ts'

/** Names in a kernel's scope: formats, schedules, memories and instructions of its program. */
export interface Surroundings extends Declarations {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly schedules: ReadonlyMap<string, Schedule>
  /** Dispatches: schedules that are selected when data are bound. */
  readonly choices: ReadonlyMap<string, Choice>
  /** Search spaces by name. */
  readonly spaces: ReadonlyMap<string, Space>
  /** Sources by name, for error messages. */
  readonly sources: Sources
  /** Memories and instructions whose device code steps may contain; `null` for no restriction. */
  readonly own: Named | null
  /** Callback for the kernels after every step and pass; null if there is none. */
  readonly observer: StageObserver | null
}
