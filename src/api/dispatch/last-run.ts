/** Facts of the latest runs: fill ratios of formats built at run time, and lists that exceeded their capacity. */
import type { Var } from '../../ir/expressions/expr.ts'
import type { Selection } from './dispatch-conditions.ts'
import type { Facts } from './facts.ts'

/** Fill ratio (stored slots / dense size) in a condition of a dispatch, as measured by runs. In [0, 1]. */
export interface FillRatio {
  /** Fill ratio by which the schedule was selected, in [0, 1]. */
  readonly value: number
  /**
   * `given`: from bound data or `statistics`. `last run`, `sample`: measured on the device. `overflow`: 1, because a list exceeded
   * its capacity. `unknown`: 1, until the first measurement.
   */
  readonly source: 'given' | 'last run' | 'sample' | 'overflow' | 'unknown'
  /** Latest measurement by a run of this schedule, or by a later sample; `null` until it has been read back. */
  readonly measured: number | null
}

/** Time of a schedule of a dispatch at the latest fill ratio, interpolated from measured times. */
export interface EstimatedTime {
  /** Call of the schedule, as in the dispatch. */
  readonly text: string
  readonly milliseconds: number | null
}

/** Selected schedule of the runs of a binding. */
export interface RunSelection extends Selection {
  /**
   * Fill ratios by the text of the condition, such as `fill_ratio(A, panels(8, 1))`. Empty if no condition depends on run-time
   * measurements.
   */
  readonly fillRatios: Readonly<Record<string, FillRatio>>
  /** First schedule that was selected but skipped, because a list exceeded its capacity; `null` if there is none. */
  readonly overflowedSchedule: string | null
  /** Schedule that the measured fill ratios would have selected; `null` if that is the selected schedule. */
  readonly hindsightSchedule: string | null
  /**
   * Times of the schedules that were selected so far, at their latest fill ratios: a line through the times measured by `time`;
   * `null` milliseconds without measurements. For information only.
   */
  readonly estimates: readonly EstimatedTime[]
}

type KnownFillRatio = Pick<FillRatio, 'value' | 'source'>

/** Facts measured by runs on the same data, or by samples: the launches of a builder alone. */
export class LastRun implements Facts {
  /** Latest fill ratios, by name. */
  readonly found: Map<string, KnownFillRatio>
  /** Calls of the schedules whose latest measurement exceeded their capacity, with the names of the fill ratios that they measure. */
  readonly full = new Map<string, readonly string[]>()
  /** Calls of the schedules that cannot share memory, with their `inout` tensors in another format. */
  readonly elsewhere = new Map<string, readonly string[]>()
  /** Fill ratios measured since the latest decision. */
  readonly since = new Map<string, number>()
  /** True if a measurement changed since the latest decision. */
  isNews = false
  isFreed = false

  constructor(found?: ReadonlyMap<string, KnownFillRatio>) {
    this.found = new Map(found)
  }

  value({ name }: Var): number | undefined {
    return this.found.get(name)?.value
  }

  /** `names`: fill ratios that the schedule measures. */
  capacity(call: string, names: readonly string[], isExceeded: boolean): void {
    if (isExceeded !== this.full.has(call)) this.isNews = true
    isExceeded ? this.full.set(call, names) : this.full.delete(call)
  }

  fillRatio(name: string, value: number, source: FillRatio['source']): void {
    const before = this.found.get(name)
    if (before?.value !== value || before.source !== source) this.isNews = true
    this.found.set(name, { value, source })
    this.since.set(name, value)
  }
}

/** Asynchronous readback of measurements, one at a time. The latest request during a readback is served after that readback. */
export class SparsityReadback {
  #next: (() => Promise<void>) | undefined
  #reading: Promise<void> | undefined

  /** Queues a readback. Errors are reported by the next call that waits. */
  later(read: () => Promise<void>): void {
    this.#next = read
    this.#reading ??= this.#read()
  }

  async #read(): Promise<void> {
    for (let read = this.#next; read; read = this.#next) {
      this.#next = undefined
      await read().catch(() => {})
    }
    this.#reading = undefined
  }

  async known(): Promise<void> {
    await this.#reading
  }
}
