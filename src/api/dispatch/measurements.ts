/** Facts of the latest runs: fill ratios of formats built at run time, and lists that exceeded their capacity. */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { type Candidate, kernelOf, textOf } from '../built/candidates.ts'
import type { Branch, Branches, LiveRatios } from './branches.ts'
import type { Selection } from './dispatch-conditions.ts'
import { determinesFillRatio, fillRatio } from './fill-ratio.ts'

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

/** Selected schedule of the runs of a binding. */
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

type KnownFillRatio = Pick<FillRatio, 'value' | 'source'>

/** Selects schedules by measured fill ratios, for inputs whose other facts are known. */
export interface RunTimeSelector {
  readonly live: LiveRatios
  /** Names of the fill ratios that only runs can measure. */
  readonly unknown: ReadonlySet<string>
  /** `found`: fill ratios by name. `passed`: schedules to skip. Throws SptError `choose/…`. */
  select(found: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): Candidate
}

/** The schedule selected if all fill ratios were `share`, except that of `one`, which is 0. */
export const selectAt = (
  selector: RunTimeSelector,
  share: number,
  one?: string,
  passed?: ReadonlySet<string>,
): Candidate =>
  selector.select(new Map([...selector.live.keys()].map((name) => [name, name === one ? 0 : share])), passed)

/**
 * Schedules that measure a fill ratio, found by repeatedly skipping the selected one: the first if the other fill ratios are 1, and the
 * first if they are 0.
 */
function* observersOf(selector: RunTimeSelector, name: string): Generator<Candidate, void> {
  const ratio = selector.live.get(name)!
  for (const others of [1, 0]) {
    const passed = new Set<string>()
    for (;;) {
      const candidate = resultOrError(() => selectAt(selector, others, name, passed))
      if (candidate instanceof SptError) break
      const { runtimeLists = [] } = kernelOf(candidate)
      if (runtimeLists.some((f) => determinesFillRatio(f, ratio))) {
        yield candidate
        break
      }
      passed.add(textOf(candidate))
    }
  }
}

/** The schedule selected when overflowing schedules are skipped. */
export interface Decided {
  readonly candidate: Candidate
  /** The first schedule that was skipped because of an overflow; null if there is none. */
  readonly overflowed: string | null
  /** Fill ratios on which the selection is based, by name. */
  readonly fillRatios: Readonly<Record<string, FillRatio>>
}

/** Fill ratios and overflows that runs of schedules measure, or samples by the launches of a builder alone. */
export class Measurements {
  readonly #selector: RunTimeSelector
  readonly #branches: Branches
  /** Latest fill ratios, by name. */
  readonly found: Map<string, KnownFillRatio>
  /** Schedules whose latest measurement exceeded their capacity. */
  readonly full = new Set<Branch>()
  /** Branches that measure a fill ratio if the current schedule does not; `null` if none can. */
  readonly #observers = new Map<string, Branch | null>()
  /** Fill ratios measured since the latest decision. */
  readonly since = new Map<string, number>()
  /** True if a measurement changed since the latest decision. */
  isNews = false
  isFreed = false

  constructor(selector: RunTimeSelector, branches: Branches, found?: ReadonlyMap<string, KnownFillRatio>) {
    this.#selector = selector
    this.#branches = branches
    this.found = new Map(found)
  }

  /**
   * Selects a schedule by the latest fill ratios. Skips schedules that overflowed (their fill ratios count as 1, unless no branch matches
   * then) and, with `here`, schedules that do not share this memory. If no other schedule remains, the first one is kept. Throws the
   * SptError of an illegal selected schedule.
   */
  select(here = false): Decided {
    const found = new Map([...this.found].map(([name, { value }]) => [name, value]))
    const first = this.#selector.select(found)
    const passed = new Set<string>()
    let overflowed: string | null = null
    let counted: ReadonlySet<string> = new Set()
    let candidate = first
    for (;;) {
      const text = textOf(candidate)
      const full = [...this.full].find((b) => b.text === text)
      const isElsewhere = here && this.#branches.elsewhere(text) !== undefined
      if (!full && !isElsewhere) return this.decided(candidate, overflowed, counted)
      passed.add(text)
      if (full) overflowed ??= text
      counted = new Set([...counted, ...(full?.findings ?? []).map((f) => f.statistic)])
      const all = new Map([...found, ...[...counted].map((name) => [name, 1] as const)])
      let next = resultOrError(() => this.#selector.select(all, passed))
      if (next instanceof SptError) {
        counted = new Set()
        next = resultOrError(() => this.#selector.select(found, passed))
      }
      if (next instanceof SptError) {
        if (next.diagnostics[0]!.code !== 'choose/no-match') throw next
        return this.decided(first, null, counted)
      }
      candidate = next
    }
  }

  /** A decision with its fill ratios. `counted`: names of those that count as 1, because the schedule that measures them overflowed. */
  decided(
    candidate: Candidate,
    overflowed: string | null = null,
    counted: ReadonlySet<string> = new Set(),
  ): Decided {
    const { live, unknown } = this.#selector
    const values = candidate.selection?.values ?? {}
    const fillRatios = [...live.keys()].flatMap((name): [string, FillRatio][] => {
      if (!(name in values)) return []
      const [value, known] = [Number(values[name]), this.found.get(name)]
      const other = unknown.has(name) ? 'unknown' : 'given'
      const source = known?.value === value ? known.source : counted.has(name) ? 'overflow' : other
      return [[name, { value, source, measured: null }]]
    })
    return { candidate, overflowed, fillRatios: byName(fillRatios) }
  }

  /** Branches to sample: those that measure fill ratios of other schedules, and those that overflowed. */
  others(now: Branch): readonly Branch[] {
    const names = [...this.#selector.live.keys()].filter((name) => !now.finds(name))
    const full = [...this.full].filter((b) => b !== now && b.commands.length > 0)
    return [...new Set([...names.flatMap((name) => this.#observers.get(name) ?? []), ...full])]
  }

  observe(now: Branch): Promise<void> | undefined {
    const unseen = [...this.#selector.live.keys()].filter(
      (name) => !now.finds(name) && !this.#observers.has(name),
    )
    if (unseen.length === 0) return undefined
    const all = async (): Promise<void> => {
      for (const name of unseen) this.#observers.set(name, await this.#observerOf(name))
    }
    return all()
  }

  /** Returns a branch whose launches measure a fill ratio without the rest of the kernel; null if there is none. */
  async #observerOf(name: string): Promise<Branch | null> {
    for (const candidate of observersOf(this.#selector, name)) {
      let found: Branch | null = null
      const error = await valueOrError(async () =>
        this.#branches.with(candidate, (branch) => {
          if (branch.commands.length > 0) found = branch
          return undefined
        }),
      )
      if (found && !error) return found
    }
    return null
  }

  async sample(branch: Branch, from: FillRatio['source']): Promise<void> {
    await branch.executable.program.device.run(branch.commands)
    await this.read(branch, from)
  }

  async read(branch: Branch, from: FillRatio['source']): Promise<void> {
    const { executable, findings } = branch
    const { params } = executable.bound
    const isFull = (await branch.overflow()) !== undefined
    if (isFull !== this.full.has(branch)) this.isNews = true
    isFull ? this.full.add(branch) : this.full.delete(branch)
    for (const { statistic, found, elements } of findings) {
      const counts = await Promise.all(found.parts.map((p) => executable.values(p.counts)))
      const value = fillRatio(found, counts, elements, params)
      if (this.isFreed) return
      const before = this.found.get(statistic)
      if (before?.value !== value || before.source !== from) this.isNews = true
      this.found.set(statistic, { value, source: from })
      this.since.set(statistic, value)
    }
  }
}

/** Asynchronous readback of measurements, one at a time; a request during a readback is served after it. */
export class SparsityReadback {
  #reading: Promise<void> | undefined
  #again: (() => void) | undefined

  /** Queues a readback. Its errors are dropped here, and reported by the next call that waits. */
  later(read: () => Promise<void>): void {
    if (this.#reading) {
      this.#again = () => this.later(read)
      return
    }
    this.#reading = read()
      .catch(() => {})
      .then(() => {
        this.#reading = undefined
        const again = this.#again
        this.#again = undefined
        again?.()
      })
  }

  async known(): Promise<void> {
    while (this.#reading) await this.#reading
  }
}
