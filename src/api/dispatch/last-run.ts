/** Facts of the latest run of a binding under a dispatch by fill ratios that are measured at run time. */
import type { Selection } from './dispatch-conditions.ts'

/** Fill ratio (stored slots / dense size) in a condition of a dispatch. In [0, 1]. */
export interface FillRatio {
  /** Fill ratio by which the schedule was selected, in [0, 1]. */
  readonly value: number
  /** `given`: from bound data or `statistics`. `last run`: measured on the data of the run. `unknown`: 1, until the first run. */
  readonly source: 'given' | 'last run' | 'unknown'
  /** Latest measurement on the device; `null` until it has been read back. */
  readonly measured: number | null
}

/** Selected schedule of the latest run of a binding. */
export interface RunSelection extends Selection {
  /**
   * Fill ratios by the text of the condition, such as `fill_ratio(A, panels(8, 1))`. Empty if no condition depends on run-time
   * measurements.
   */
  readonly fillRatios: Readonly<Record<string, FillRatio>>
  /** First schedule that was selected but skipped, because a list exceeded its capacity; `null` if there is none. */
  readonly overflowedSchedule: string | null
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
