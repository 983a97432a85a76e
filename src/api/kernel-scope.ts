import type { Choice, Named, Schedule, Space } from '../elaborate/index.ts'
import type { AnyFormat } from '../ir/format.ts'
import type { StageObserver } from '../run/compile.ts'
import type { Sources } from '../run/launch-spans.ts'
import type { Declarations } from './instruction-lookup.ts'

/** What a kernel can name: formats, schedules, memories and instructions of its program. */
export interface Surroundings extends Declarations {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly schedules: ReadonlyMap<string, Schedule>
  /** Schedules that are decided when data are bound. */
  readonly choices: ReadonlyMap<string, Choice>
  /** What is searched. */
  readonly spaces: ReadonlyMap<string, Space>
  /** Texts by name, for the lines of its kernels. */
  readonly sources: Sources
  /** The memories and instructions whose texts, which run as they are written, steps may bring; `null`: any. */
  readonly own: Named | null
  /** Sees its kernels after every step and pass. */
  readonly observer: StageObserver | null
}
