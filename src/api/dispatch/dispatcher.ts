/** Dispatch of a prepared kernel: a fixed schedule, or one for each run by the latest fill ratio. */
import type { SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Statistic } from '../../elaborate/index.ts'
import type { BareValues } from '../../run/bind/results/update-values.ts'
import { withValues } from '../../run/bind/results/update-values.ts'
import type { Executable } from '../../run/execution/execute.ts'
import { isOverflow } from '../../run/execution/overflow-error.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { Selection } from './dispatch-conditions.ts'

/** Fill ratio (stored slots / dense size) in a condition of a dispatch, as measured by runs. In [0, 1]. */
export interface FillRatio {
  /** Fill ratio by which the schedule was selected, in [0, 1]. */
  readonly value: number
  /**
   * `given`: from bound data or `statistics`. `last run`, `sample`: measured on the device. `overflow`: 1, because a list exceeded
   * its capacity. `unknown`: 1, until the first measurement.
   */
  readonly source: 'given' | 'last run' | 'sample' | 'overflow' | 'unknown'
  /** Latest measurement by a run of this schedule, or by a sample after it; `null` until it has been read back. */
  readonly measured: number | null
}

/** Time of a schedule of a dispatch at the latest fill ratio, interpolated from measured times. */
export interface EstimatedTime {
  /** Call of the schedule, as in the dispatch. */
  readonly text: string
  readonly milliseconds: number | null
}

/** Selected schedule of the runs of a prepared kernel. */
export interface RunSelection extends Selection {
  /**
   * Fill ratios by the text of the condition, such as `fill_ratio(A, panels(8, 1))`. Empty if no condition depends on run-time
   * measurements.
   */
  readonly fillRatios: Readonly<Record<string, FillRatio>>
  /** First schedule that was selected but skipped, because a list exceeded its capacity; `null` if there is none. */
  readonly overflowedSchedule: string | null
  /** Schedule that the measured fill ratios would have selected; `null` if it is the same one. */
  readonly hindsightSchedule: string | null
  /**
   * Times of the schedules that were selected so far, at their latest fill ratios: a line through the times measured by `time`;
   * `null` milliseconds without measurements. For information only.
   */
  readonly estimates: readonly EstimatedTime[]
}

export interface Dispatcher<K> {
  /** Kernel of the latest run; before the first run, of the next one. */
  readonly kernel: K
  readonly executable: Executable
  /** Executable that owns the memory of the results. */
  readonly owner: Executable
  readonly selection: RunSelection | null
  /** Selects the schedule of the next run; `undefined` if this needs no waiting. */
  next(): Promise<void> | undefined
  /**
   * Handles an overflow after a run: undefined if the run can be repeated under another schedule, which is then selected; otherwise the
   * error to report.
   */
  overflowed(error: SptError): Promise<SptError | undefined>
  /** Starts the readback of measured fill ratios after a run. `milliseconds`: the time of the run, if measured. */
  ran(milliseconds?: number): Promise<void> | undefined
  /** Resolves when all measured fill ratios of earlier runs have been read back. */
  awaitMeasurements(): Promise<void>
  /** Compiles the schedules that runs may select. */
  precompile(): Promise<void>
  write(name: string, update: Tensor | BareValues): Promise<void>
  /** Rebuilds on another device, with the bound and written values; undefined for a fixed schedule. */
  rebuilt?(device: Device): Promise<Dispatcher<K>>
  free(): void
}

/** Returns true if another fill ratio may select another schedule, because a condition uses it. */
export const isOpen = (statistics: ReadonlyMap<string, Statistic>, { values }: Selection): boolean =>
  liveOf(statistics).some(([name]) => name in values)

/** Statistics that are fill ratios of formats built at run time. */
export const liveOf = (statistics: ReadonlyMap<string, Statistic>) =>
  [...statistics].flatMap(([name, s]) => (s.kind === 'fill_ratio' && s.live ? [[name, s] as const] : []))

/**
 * Runs `work` under the selected schedule, and again under another one after an overflow. `timesOf`: measured milliseconds of the result.
 */
export async function running<T>(
  of: Dispatcher<unknown>,
  work: (executable: Executable) => Promise<T>,
  timesOf: (done: T) => readonly number[] = () => [],
): Promise<T> {
  const deciding = of.next()
  if (deciding) await deciding
  const done = await withRoom(of, work)
  const times = [...timesOf(done)].sort((a, b) => a - b)
  const reading = of.ran(times[times.length >> 1])
  if (reading) await reading
  return done
}

/** Repeats `work` after overflows, each time under a schedule that was not tried yet. */
async function withRoom<T>(
  of: Dispatcher<unknown>,
  work: (executable: Executable) => Promise<T>,
): Promise<T> {
  for (;;)
    try {
      return await work(of.executable)
    } catch (e) {
      if (!isOverflow(e)) throw e
      const error = await of.overflowed(e)
      if (error) throw error
    }
}

export const asTimes = (times: readonly number[]): readonly number[] => times

export const fixedDispatcher = <K>(
  kernel: K,
  executable: Executable,
  chosen: Selection | null,
): Dispatcher<K> => ({
  kernel,
  executable,
  owner: executable,
  selection: chosen && {
    ...chosen,
    fillRatios: {},
    overflowedSchedule: null,
    hindsightSchedule: null,
    estimates: [],
  },
  next: () => undefined,
  overflowed: async (error) => error,
  ran: () => undefined,
  awaitMeasurements: async () => {},
  precompile: async () => {},
  async write(name, update) {
    const written = withValues(executable.bound, name, update)
    await executable.rebind(written.bound, written.buffers)
  },
  free: () => executable.free(),
})
