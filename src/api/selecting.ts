/** Which schedule a prepared kernel runs next: one for good, or what the newest coverage says. */
import type { SptError } from '../ast/diagnostic.ts'
import type { Statistic } from '../elaborate/index.ts'
import type { BareValues } from '../run/bind/update-values.ts'
import { withValues } from '../run/bind/update-values.ts'
import type { Executable } from '../run/execute.ts'
import { isOverflow } from '../run/overflow-error.ts'
import type { Device } from '../runtime/device.ts'
import type { Tensor } from '../storage/tensor.ts'
import type { Chosen } from './choice-conditions.ts'

/** A share that a condition asked for and that runs find. */
export interface FoundShare {
  /** What the schedule was chosen by. */
  readonly value: number
  /**
   * `given`: of what was bound, or told; `last run`, `sample`: found on the device; `overflow`: 1, since there was no room for what
   * was found; `unknown`: 1, until a run has found it.
   */
  readonly from: 'given' | 'last run' | 'sample' | 'overflow' | 'unknown'
  /** What the latest run under this schedule found, or a sample behind it; `null` until that has been read back. */
  readonly found: number | null
}

/** What a schedule of a choice is expected to take. */
export interface Predicted {
  /** As a choice writes it. */
  readonly text: string
  readonly milliseconds: number | null
}

/** A schedule that was chosen for the runs of a prepared kernel. */
export interface RunChoice extends Chosen {
  /** By the condition's words: `covered(A, panels(8, 1))`. Empty where nothing that it was chosen by is found in runs. */
  readonly covered: Readonly<Record<string, FoundShare>>
  /** What was chosen but had no room for what it found, so that all counted as covered; of several, the first. */
  readonly overflowed: string | null
  /** What would have been chosen by what was found, where that is another schedule. */
  readonly regret: string | null
  /**
   * Of the schedules that runs have been led to, what each is expected to take at the newest share that it finds: on a line through
   * what `time` has measured, `null` where it has not.
   */
  readonly predicted: readonly Predicted[]
}

export interface Selecting<K> {
  /** Of the latest run, or the next one. */
  readonly kernel: K
  readonly executable: Executable
  /** Whose memory results lie in. */
  readonly owner: Executable
  readonly choice: RunChoice | null
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
  known(): Promise<void>
  /** Makes what runs may be led to. */
  ahead(): Promise<void>
  write(name: string, update: Tensor | BareValues): Promise<void>
  /** On another device, where runs choose the schedule: with what is bound and written. */
  rebuilt?(device: Device): Promise<Selecting<K>>
  free(): void
}

/** Whether another coverage may lead to another schedule: what no condition has asked for changes nothing. */
export const isOpen = (statistics: ReadonlyMap<string, Statistic>, { values }: Chosen): boolean =>
  liveOf(statistics).some(([name]) => name in values)

/** Of which shares runs tell. */
export const liveOf = (statistics: ReadonlyMap<string, Statistic>) =>
  [...statistics].flatMap(([name, s]) => (s.kind === 'covered' && s.live ? [[name, s] as const] : []))

/** Work that runs the kernel, under the schedule that is chosen for it, and under another one where that has no room. */
export async function running<T>(
  of: Selecting<unknown>,
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
async function withRoom<T>(of: Selecting<unknown>, work: (executable: Executable) => Promise<T>): Promise<T> {
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
export const settled = <K>(kernel: K, executable: Executable, chosen: Chosen | null): Selecting<K> => ({
  kernel,
  executable,
  owner: executable,
  choice: chosen && { ...chosen, covered: {}, overflowed: null, regret: null, predicted: [] },
  next: () => undefined,
  overflowed: async (error) => error,
  ran: () => undefined,
  known: async () => {},
  ahead: async () => {},
  async write(name, update) {
    const written = withValues(executable.bound, name, update)
    await executable.rebind(written.bound, written.buffers)
  },
  free: () => executable.free(),
})
