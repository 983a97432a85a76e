/**
 * Schedule of each run of a binding: always the same, or selected by the latest fill ratio of a format that is `live in place`.
 * Schedules that build the format leave list lengths in memory. Under other schedules, the launches of a builder run from time to time.
 * Readback is asynchronous.
 */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { BareValues } from '../../run/bind/results/update-values.ts'
import type { Executable } from '../../run/execution/execute.ts'
import { isOverflow, storedElsewhere } from '../../run/execution/overflow-error.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { bindCandidate, type Candidate, candidateOf, textOf } from '../built/candidates.ts'
import type { CompiledCode } from '../built/code.ts'
import { withAlternatives } from './combined-branches.ts'
import type { Selection } from './dispatch-conditions.ts'
import { equalRatios } from './facts.ts'
import { type FillRatio, LastRun, type RunSelection, SparsityReadback } from './last-run.ts'
import { explained, type NextSchedule, nextSchedule } from './next-schedule.ts'
import { PreparedSchedule } from './prepared-schedule.ts'
import { FROM_INPUTS, type Preparation, PreparedSchedules } from './prepared-schedules.ts'
import type { Selector } from './selector.ts'

const MOST_RUNS_BETWEEN_SAMPLES = 16

export class Runs {
  /** Null for a fixed schedule. */
  readonly #selector: Selector | null
  readonly #last: LastRun
  readonly #prepared: PreparedSchedules
  #now: PreparedSchedule
  #next: NextSchedule
  /** Schedules under which the current run overflowed. */
  readonly #tried = new Set<PreparedSchedule>()
  /** The alternatives that the latest run selected, with and without regard to capacities; undefined before they have been read back. */
  #selectedOnDevice: readonly number[] | undefined
  /** Number of runs under this schedule (`#runs`), and the number at which the next sample is taken (`#sampled`). */
  #runs = 0
  #sampled = 1
  readonly #readings = new SparsityReadback()

  private constructor(
    selector: Selector | null,
    last: LastRun,
    first: Candidate,
    prepared: PreparedSchedule,
    from?: Preparation,
  ) {
    this.#selector = selector
    this.#last = last
    this.#prepared = new PreparedSchedules(selector, last, prepared, from)
    this.#now = prepared
    this.#next = explained(selector, last, first)
  }

  /** Runs always use this schedule. */
  static fixed(compiled: CompiledCode, executable: Executable, selection: Selection | null = null): Runs {
    const { plan } = executable.program
    const candidate = { ...candidateOf(compiled, {}), selection: withAlternatives(selection, plan) }
    const prepared = new PreparedSchedule(null, textOf(candidate), compiled, executable)
    return new Runs(null, new LastRun(), candidate, prepared)
  }

  /**
   * Prepares the runs of a binding, whose schedules `selector` selects.
   * @param first - Default: selected by measurements of the device, if it may measure the fill ratios, so that the host need not read the
   * data; otherwise on the host
   */
  static async create(selector: Selector, first?: Candidate): Promise<Runs> {
    const combined = selector.onDevice()
    if (combined) return Runs.#onDevice(selector, combined)
    const measured = !first && selector.isMeasuredFirst ? await Runs.#measuredFirst(selector) : null
    return measured ?? Runs.#start(selector, first ?? selector.select())
  }

  /** Prepares runs that select on the device. The schedule of the bound data is known before the first run if the measuring launches can run alone. */
  static async #onDevice(selector: Selector, combined: Candidate): Promise<Runs> {
    const compiled = await combined.compile()
    const prepared = await PreparedSchedule.create(
      selector,
      textOf(combined),
      compiled,
      bindCandidate(combined),
    )
    const runs = new Runs(null, new LastRun(), combined, prepared)
    if (selector.isMeasuredFirst && prepared.commands.length > 0) {
      await compiled.device.run(prepared.commands)
      await runs.#read('given')
    }
    return runs
  }

  /** Reads what the latest run measured, and the selected alternative. */
  async #read(from: FillRatio['source']): Promise<void> {
    const now = this.#now
    await now.read(this.#last, from)
    const { branches } = now.executable.program.plan
    if (branches) this.#selectedOnDevice = Array.from(await now.executable.values(branches.choice), Number)
  }

  static async #start(
    selector: Selector | null,
    first: Candidate,
    last = new LastRun(),
    from = FROM_INPUTS,
  ): Promise<Runs> {
    const compiled = await first.compile(from.device)
    const prepared = await PreparedSchedule.create(selector, textOf(first), compiled, from.bind(first))
    const runs = new Runs(selector, last, first, prepared, from)
    try {
      await runs.#prepared.observe(runs.#now)
    } catch (e) {
      runs.free()
      throw e
    }
    return runs
  }

  /**
   * Measures the bound data with the launches of a builder. Null if no schedule can measure, or its launches are rejected or cannot run
   * alone.
   */
  static async #measuredFirst(selector: Selector): Promise<Runs | null> {
    let runs: Runs | undefined
    try {
      runs = await Runs.#start(selector, selector.select([equalRatios(selector.live, 0)]))
      const { findings, commands } = runs.#now
      if (findings.length > 0 && commands.length > 0) {
        for (const prepared of [runs.#now, ...runs.#prepared.others(runs.#now)])
          await prepared.sample(runs.#last, 'given')
        await runs.#decide()
        const next = nextSchedule(selector, runs.#last)
        if (textOf(next.candidate) === runs.#now.text) return runs
        // No data has been updated yet, so the selected schedule may use its own storage.
        const other = await Runs.#start(selector, next.candidate, new LastRun(runs.#last.found))
        runs.free()
        other.#next = next
        return other
      }
    } catch (e) {
      if (!(e instanceof SptError)) throw e
    }
    runs?.free()
    return null
  }

  /** Code of the latest run; before the first run, of the next one. */
  get code(): CompiledCode {
    return this.#now.compiled
  }

  /** Executable that owns the memory of the results. */
  get owner(): Executable {
    return this.#prepared.first.executable
  }

  get executable(): Executable {
    return this.#now.executable
  }

  get selection(): RunSelection | null {
    const { candidate, overflowed, fillRatios } = this.#next
    if (!candidate.selection) return null
    const { since, found } = this.#last
    const { alternatives = [] } = candidate.selection
    const [taken, wanted] = this.#selectedOnDevice ?? []
    if (taken !== undefined) {
      const ratios = [...found].map(([name, known]) => [name, { ...known, measured: known.value }] as const)
      return {
        ...candidate.selection,
        ...alternatives[taken]!,
        fillRatios: byName(ratios),
        overflowedSchedule: wanted === taken ? null : alternatives[wanted!]!.text,
        hindsightSchedule: null,
        estimates: [],
        alternatives,
      }
    }
    const prepared = this.#prepared.live.size > 0 ? [...this.#prepared] : []
    const estimates = prepared.map(({ text, times, findings: [own] }) => ({
      text,
      // Schedules without a measured fill ratio have a constant time.
      milliseconds: times.at(own ? (found.get(own.statistic)?.value ?? 1) : 0),
    }))
    const measured = Object.entries(fillRatios).map(
      ([name, share]) => [name, { ...share, measured: since.get(name) ?? null }] as const,
    )
    const isMeasured = Object.keys(fillRatios).some((name) => since.has(name))
    const now = isMeasured ? resultOrError(() => textOf(this.#selected().candidate)) : undefined
    return {
      ...candidate.selection,
      fillRatios: byName(measured),
      overflowedSchedule: overflowed,
      hindsightSchedule: now === undefined || now instanceof SptError || now === this.#now.text ? null : now,
      estimates,
    }
  }

  /** The schedule that the latest measurements select. `here`: among those that share memory. */
  #selected(here = false): NextSchedule {
    return this.#selector ? nextSchedule(this.#selector, this.#last, here) : this.#next
  }

  /** Runs `work` under the selected schedule, and again under another one after an overflow. `timesOf`: milliseconds of the result. */
  async run<T>(
    work: (executable: Executable) => Promise<T>,
    timesOf: (done: T) => readonly number[] = () => [],
  ): Promise<T> {
    const deciding = this.#deciding()
    if (deciding) await deciding
    const done = await this.#withinCapacity(work)
    const times = [...timesOf(done)].sort((a, b) => a - b)
    const reading = this.#ran(times[times.length >> 1])
    if (reading) await reading
    return done
  }

  /** Repeats `work` after overflows, each time under a schedule that was not tried yet. */
  async #withinCapacity<T>(work: (executable: Executable) => Promise<T>): Promise<T> {
    for (;;)
      try {
        return await work(this.executable)
      } catch (e) {
        if (!isOverflow(e) || this.#prepared.live.size === 0) throw e
        const error = await this.#afterOverflow(e)
        if (error) throw error
      }
  }

  /** Selects the schedule of the next run; `undefined` if this needs no waiting. */
  #deciding(): Promise<void> | undefined {
    this.#tried.clear()
    const deciding = this.#last.isNews && this.#decide()
    return deciding ? deciding.then(() => this.#spare()) : this.#spare()
  }

  /**
   * Before a run that updates tensors in place: measures again if the schedule overflowed before, and throws if it would overflow, so that
   * no tensor is partly updated.
   */
  #spare(): Promise<void> | undefined {
    const now = this.#now
    if (!this.#last.full.has(now.text) || !now.updates || now.commands.length === 0) return undefined
    return now.sample(this.#last, 'sample').then(async () => {
      const error = this.#last.full.has(now.text) && (await now.overflow())
      if (error) throw this.#unchanged(error)
    })
  }

  /** The error, with the reason why no other schedule is usable. */
  #unchanged(error: SptError): SptError {
    const text = textOf(this.#selected().candidate)
    const tensors = this.#last.elsewhere.get(text)
    return tensors ? storedElsewhere(error, text, tensors) : error
  }

  #decide(): Promise<void> | undefined {
    this.#last.isNews = false
    const next = this.#selected(this.#last.full.has(this.#now.text))
    const { candidate } = next
    const isElsewhere = (): boolean => this.#last.elsewhere.has(textOf(candidate))
    const isKnown = isElsewhere()
    const switched = this.#prepared.with(candidate, (prepared) => {
      if (prepared !== this.#now) [this.#runs, this.#sampled] = [0, 1]
      this.#now = prepared
      this.#next = next
      this.#last.since.clear()
      return this.#prepared.observe(prepared)
    })
    // A schedule that turns out not to share memory is skipped.
    return switched?.then(() => (!isKnown && isElsewhere() ? this.#decide() : undefined))
  }

  /**
   * Handles an overflow after a run: undefined if the run can be repeated under another schedule, which is then selected; otherwise the
   * error to report.
   */
  async #afterOverflow(error: SptError): Promise<SptError | undefined> {
    const full = this.#now
    this.#tried.add(full)
    await this.awaitMeasurements()
    await full.read(this.#last, 'last run')
    // Other fill ratios may never have been measured on these data, so they are sampled now.
    for (const prepared of this.#prepared.others(this.#now))
      if (!this.#tried.has(prepared)) await prepared.sample(this.#last, 'sample')
    await this.#decide()
    if (!full.updates && !this.#tried.has(this.#now)) return undefined
    return this.#last.full.has(this.#now.text) ? this.#unchanged(error) : error
  }

  /** Starts the readback of measured fill ratios after a run. `milliseconds`: the time of the run, if measured. */
  #ran(milliseconds?: number): Promise<void> | undefined {
    const now = this.#now
    const [own] = now.findings
    if (!own && milliseconds !== undefined) now.times.add(0, milliseconds)
    const others = ++this.#runs < this.#sampled ? [] : this.#prepared.others(now)
    if (others.length > 0) this.#sampled += Math.min(this.#sampled, MOST_RUNS_BETWEEN_SAMPLES)
    const isDeciding = now.executable.program.plan.branches !== undefined
    if (!own && !isDeciding && others.length === 0) return undefined
    const read = async (): Promise<void> => {
      if (own || isDeciding) await this.#read('last run')
      const share = own && this.#last.found.get(own.statistic)
      if (milliseconds !== undefined && share) now.times.add(share.value, milliseconds)
      for (const prepared of others) await prepared.sample(this.#last, 'sample')
    }
    // On the CPU, no work is in flight.
    if (now.executable.program.device.kind === 'cpu') return read()
    this.#readings.later(read)
    return undefined
  }

  /** Resolves when all measured fill ratios of earlier runs have been read back. */
  awaitMeasurements(): Promise<void> {
    return this.#readings.known()
  }

  /** Compiles the schedules that runs may select. */
  async precompile(): Promise<void> {
    const { live } = this.#prepared
    const ones = [...live.keys()].map((name) => equalRatios(live, 1, name))
    for (const facts of [equalRatios(live, 0), equalRatios(live, 1), ...ones])
      await this.#prepared.with(this.#selector?.select([facts]) ?? this.#next.candidate, () => undefined)
  }

  write(name: string, update: Tensor | BareValues): Promise<void> {
    return this.#prepared.write(name, update)
  }

  /** Rebuilds on another device, with the values that were bound or written until now. */
  rebuilt(device: Device): Promise<Runs> {
    const from = this.#prepared.onDevice(device)
    return Runs.#start(this.#selector, this.#selected().candidate, new LastRun(), from)
  }

  free(): void {
    this.#last.isFreed = true
    this.#prepared.free()
  }
}
