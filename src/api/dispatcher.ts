/** Dispatch of a prepared kernel: a fixed schedule, or one for each run by the latest fill ratio. */
import type { SptError } from '../ast/diagnostic.ts'
import type { Statistic } from '../elaborate/index.ts'
import type { BareValues } from '../run/bind/update-values.ts'
import { withValues } from '../run/bind/update-values.ts'
import type { Executable } from '../run/execute.ts'
import { isOverflow } from '../run/overflow-error.ts'
import type { Device } from '../runtime/device.ts'
import type { Tensor } from '../storage/tensor.ts'
import type { Selection } from './dispatch-conditions.ts'

/** Fill ratio (stored slots / dense size) in a condition of a dispatch, as measured by runs. In [0, 1]. */
export interface FillRatio {
  /** Value by which the schedule was selected. */
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
  /** As a choice writes it. */
  readonly text: string
  readonly milliseconds: number | null
}

/** Selected schedule of the runs of a prepared kernel. */
export interface RunSelection extends Selection {
  /** By text of the condition: `fill_ratio(A, panels(8, 1))`. Empty if no condition depends on run-time measurements. */
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
  /** Of the latest run, or the next one. */
  readonly kernel: K
  readonly executable: Executable
  /** Whose memory results lie in. */
  readonly owner: Executable
  readonly selection: RunSelection | null
  /** Decides what runs; `undefined` where there is nothing to wait for. */
  next(): Promise<void> | undefined
  /**
   * Behind a run that found more than there is room for: nothing where it can be repeated under another schedule, which is next;
   * else what there is to be told of it.
   */
  overflowed(error: SptError): Promise<SptError | undefined>
  /** Behind a run: has what it found read back. `milliseconds`: what it took, where that was measured. */
  ran(milliseconds?: number): Promise<void> | undefined
  /** Resolves when what runs have found so far has been read back. */
  awaitMeasurements(): Promise<void>
  /** Makes what runs may be led to. */
  precompile(): Promise<void>
  write(name: string, update: Tensor | BareValues): Promise<void>
  /** On another device, where runs choose the schedule: with what is bound and written. */
  rebuilt?(device: Device): Promise<Dispatcher<K>>
  free(): void
}

/** Whether another coverage may lead to another schedule: what no condition has asked for changes nothing. */
export const isOpen = (statistics: ReadonlyMap<string, Statistic>, { values }: Selection): boolean =>
  liveOf(statistics).some(([name]) => name in values)

/** Of which shares runs tell. */
export const liveOf = (statistics: ReadonlyMap<string, Statistic>) =>
  [...statistics].flatMap(([name, s]) => (s.kind === 'fill_ratio' && s.live ? [[name, s] as const] : []))

/** Work that runs the kernel, under the schedule that is chosen for it, and under another one where that has no room. */
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

/** Each repetition is under a schedule that has not been tried for it. */
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

/** One schedule for all runs. */
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
