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
import { Branch, Branches } from './branches.ts'
import type { Selection } from './dispatch-conditions.ts'
import {
  type Decided,
  Measurements,
  type RunSelection,
  type RunTimeSelector,
  SparsityReadback,
  selectAt,
} from './measurements.ts'

const MOST_RUNS_BETWEEN_SAMPLES = 16

export class Dispatcher {
  readonly #selector: RunTimeSelector
  readonly #branches: Branches
  readonly #measured: Measurements
  #now: Branch
  #decision: Decided
  /** Schedules under which the current run overflowed. */
  readonly #tried = new Set<Branch>()
  /** Number of runs under this schedule (`#runs`), and the number at which the next sample is taken (`#sampled`). */
  #runs = 0
  #sampled = 1
  readonly #readings = new SparsityReadback()

  private constructor(
    selector: RunTimeSelector,
    first: Candidate,
    branch: Branch,
    found?: Measurements['found'],
  ) {
    this.#selector = selector
    this.#branches = new Branches(selector.live, branch)
    this.#measured = new Measurements(selector, this.#branches, found)
    this.#now = branch
    this.#decision = this.#measured.decided(first)
  }

  /** Runs always use this schedule. */
  static fixed(
    compiled: CompiledCode,
    executable: Executable,
    selection: Selection | null = null,
  ): Dispatcher {
    const candidate = { ...candidateOf(compiled, {}), selection, bound: () => executable.bound }
    const live = new Map()
    const branch = new Branch(live, textOf(candidate), compiled, executable)
    return new Dispatcher({ live, unknown: new Set(), select: () => candidate }, candidate, branch)
  }

  /**
   * `first`: selects on the host. `isMeasuredFirst`: true if the device may measure the fill ratio first, so that the host need not
   * read the data.
   */
  static async create(selector: RunTimeSelector, first: () => Candidate, isMeasuredFirst: boolean) {
    const measured = isMeasuredFirst ? await Dispatcher.#measuredFirst(selector) : null
    if (measured) return measured
    const dispatcher = await Dispatcher.#prepared(selector, first())
    try {
      await dispatcher.#measured.observe(dispatcher.#now)
    } catch (e) {
      dispatcher.free()
      throw e
    }
    return dispatcher
  }

  static async #prepared(selector: RunTimeSelector, first: Candidate, found?: Measurements['found']) {
    const branch = await Branch.create(selector.live, first, await first.compile(), bindCandidate(first))
    return new Dispatcher(selector, first, branch, found)
  }

  /**
   * Measures the bound data with the launches of a builder. Null if no schedule can measure, or its launches are rejected or cannot run
   * alone.
   */
  static async #measuredFirst(selector: RunTimeSelector): Promise<Dispatcher | null> {
    let dispatcher: Dispatcher | undefined
    try {
      dispatcher = await Dispatcher.#prepared(selector, selectAt(selector, 0))
      const { findings, commands } = dispatcher.#now
      if (findings.length > 0 && commands.length > 0) {
        await dispatcher.#measured.observe(dispatcher.#now)
        for (const branch of [dispatcher.#now, ...dispatcher.#measured.others(dispatcher.#now)])
          await dispatcher.#measured.sample(branch, 'given')
        await dispatcher.#decide()
        const decision = dispatcher.#measured.select()
        if (textOf(decision.candidate) === dispatcher.#now.text) return dispatcher
        // No data has been updated yet, so the selected schedule may use its own storage.
        const other = await Dispatcher.#prepared(selector, decision.candidate, dispatcher.#measured.found)
        dispatcher.free()
        dispatcher = other
        dispatcher.#decision = decision
        await dispatcher.#measured.observe(dispatcher.#now)
        return dispatcher
      }
    } catch (e) {
      if (!(e instanceof SptError)) throw e
    }
    dispatcher?.free()
    return null
  }

  /** Code of the latest run; before the first run, of the next one. */
  get code(): CompiledCode {
    return this.#now.compiled
  }

  /** Executable that owns the memory of the results. */
  get owner(): Executable {
    return this.#branches.first.executable
  }

  get executable(): Executable {
    return this.#now.executable
  }

  get selection(): RunSelection | null {
    const { candidate, overflowed, fillRatios: covered } = this.#decision
    if (!candidate.selection) return null
    const { since, found } = this.#measured
    const branches = this.#selector.live.size > 0 ? [...this.#branches] : []
    const estimates = branches.map(({ text, times, findings: [own] }) => ({
      text,
      // Schedules without a measured fill ratio have a constant time.
      milliseconds: times.at(own ? (found.get(own.statistic)?.value ?? 1) : 0),
    }))
    const fillRatios = Object.entries(covered).map(
      ([name, share]) => [name, { ...share, measured: since.get(name) ?? null }] as const,
    )
    const isMeasured = Object.keys(covered).some((name) => since.has(name))
    const now = isMeasured ? resultOrError(() => textOf(this.#measured.select().candidate)) : undefined
    return {
      ...candidate.selection,
      fillRatios: byName(fillRatios),
      overflowedSchedule: overflowed,
      hindsightSchedule: now === undefined || now instanceof SptError || now === this.#now.text ? null : now,
      estimates,
    }
  }

  /** Runs `work` under the selected schedule, and again under another one after an overflow. `timesOf`: milliseconds of the result. */
  async run<T>(
    work: (executable: Executable) => Promise<T>,
    timesOf: (done: T) => readonly number[] = () => [],
  ): Promise<T> {
    const deciding = this.#next()
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
        if (!isOverflow(e) || this.#selector.live.size === 0) throw e
        const error = await this.#afterOverflow(e)
        if (error) throw error
      }
  }

  /** Selects the schedule of the next run; `undefined` if this needs no waiting. */
  #next(): Promise<void> | undefined {
    this.#tried.clear()
    const deciding = this.#measured.isNews && this.#decide()
    return deciding ? deciding.then(() => this.#spare()) : this.#spare()
  }

  /**
   * Before a run that updates tensors in place: measures again if the schedule overflowed before, and throws if it would overflow, so that
   * no tensor is partly updated.
   */
  #spare(): Promise<void> | undefined {
    const now = this.#now
    if (!this.#measured.full.has(now) || !now.updates || now.commands.length === 0) return undefined
    return this.#measured.sample(now, 'sample').then(async () => {
      const error = this.#measured.full.has(now) && (await now.overflow())
      if (error) throw this.#unchanged(error)
    })
  }

  /** The error, with the reason why no other schedule is usable. */
  #unchanged(error: SptError): SptError {
    const text = textOf(this.#measured.select().candidate)
    const tensors = this.#branches.elsewhere(text)
    return tensors ? storedElsewhere(error, text, tensors) : error
  }

  #decide(): Promise<void> | undefined {
    this.#measured.isNews = false
    const decision = this.#measured.select(this.#measured.full.has(this.#now))
    const { candidate } = decision
    const isElsewhere = (): boolean => this.#branches.elsewhere(textOf(candidate)) !== undefined
    const isKnown = isElsewhere()
    const switched = this.#branches.with(candidate, (branch) => {
      if (branch !== this.#now) [this.#runs, this.#sampled] = [0, 1]
      this.#now = branch
      this.#decision = decision
      this.#measured.since.clear()
      return this.#measured.observe(branch)
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
    await this.#measured.read(full, 'last run')
    // Other fill ratios may never have been measured on these data, so they are sampled now.
    for (const branch of this.#measured.others(this.#now))
      if (!this.#tried.has(branch)) await this.#measured.sample(branch, 'sample')
    await this.#decide()
    if (!full.updates && !this.#tried.has(this.#now)) return undefined
    return this.#measured.full.has(this.#now) ? this.#unchanged(error) : error
  }

  /** Starts the readback of measured fill ratios after a run. `milliseconds`: the time of the run, if measured. */
  #ran(milliseconds?: number): Promise<void> | undefined {
    const now = this.#now
    const [own] = now.findings
    if (!own && milliseconds !== undefined) now.times.add(0, milliseconds)
    const others = ++this.#runs < this.#sampled ? [] : this.#measured.others(now)
    if (others.length > 0) this.#sampled += Math.min(this.#sampled, MOST_RUNS_BETWEEN_SAMPLES)
    if (!own && others.length === 0) return undefined
    const read = async (): Promise<void> => {
      if (own) await this.#measured.read(now, 'last run')
      const share = own && this.#measured.found.get(own.statistic)
      if (milliseconds !== undefined && share) now.times.add(share.value, milliseconds)
      for (const branch of others) await this.#measured.sample(branch, 'sample')
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
    const known = (): undefined => undefined
    const selector = this.#selector
    for (const share of [0, 1]) await this.#branches.with(selectAt(selector, share), known)
    for (const name of selector.live.keys()) await this.#branches.with(selectAt(selector, 1, name), known)
  }

  write(name: string, update: Tensor | BareValues): Promise<void> {
    return this.#branches.write(name, update)
  }

  /** Rebuilds on another device, with the values that were bound or written until now. */
  rebuilt(device: Device): Promise<Dispatcher> {
    const bind = this.#branches.snapshot()
    const moved = (candidate: Candidate): Candidate => ({
      ...candidate,
      compile: (other = device) => candidate.compile(other),
      bound: () => bind(candidate),
    })
    const select: RunTimeSelector['select'] = (...facts) => moved(this.#selector.select(...facts))
    const first = (): Candidate => moved(this.#measured.select().candidate)
    const { live, unknown } = this.#selector
    return Dispatcher.create({ live, unknown, select }, first, false)
  }

  free(): void {
    this.#measured.isFreed = true
    this.#branches.free()
  }
}
