/**
 * Dispatch by measured sparsity: each run uses the schedule selected by the latest fill ratio of a format that is `live in place`.
 * Schedules that build the format leave list lengths in memory. Under other schedules, the launches of a builder run from time to time.
 * Readback is asynchronous.
 */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { BareValues } from '../../run/bind/results/update-values.ts'
import type { Executable } from '../../run/execution/execute.ts'
import { storedElsewhere } from '../../run/execution/overflow-error.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { CompiledSchedule } from '../compiled/compiled.ts'
import {
  fillRatiosOf,
  type KnownFillRatio,
  Measurements,
  overflowError,
  type SelectionWithinCapacity,
  selectWithinCapacity,
  updates,
} from './capacity-overflow.ts'
import type { Branch, DispatchSource, SelectedVariant } from './dispatch-branch.ts'
import { covering, DispatchBranches, SparsityReadback } from './dispatch-branch.ts'
import type { Selection } from './dispatch-conditions.ts'
import type { Dispatcher, FillRatio, RunSelection } from './dispatcher.ts'

const MOST_RUNS_BETWEEN_SAMPLES = 16

export class RunTimeDispatcher implements Dispatcher<CompiledSchedule> {
  readonly #of: DispatchSource
  readonly #branches: DispatchBranches
  readonly #measured: Measurements
  #now: Branch
  #overflowed: string | null = null
  /** Schedules under which the current run overflowed. */
  readonly #tried = new Set<Branch>()
  #chosen: Selection
  /** Fill ratios of the selection. */
  #covered: Readonly<Record<string, FillRatio>>
  /** Number of runs under this schedule (`#runs`), and the number at which the next sample is taken (`#sampled`). */
  #runs = 0
  #sampled = 1
  readonly #readings = new SparsityReadback()

  private constructor(
    of: DispatchSource,
    first: SelectedVariant,
    branches: DispatchBranches,
    found: ReadonlyMap<string, KnownFillRatio>,
  ) {
    this.#of = of
    this.#branches = branches
    this.#measured = new Measurements(of, branches, found)
    this.#now = branches.first
    this.#chosen = first.selection
    this.#covered = fillRatiosOf(of, this.#chosen, found, new Set())
  }

  /**
   * Creates the dispatcher.
   * @param first selects on the host
   * @param isFound true if the device may measure the fill ratio first, which saves the host from reading the data
   */
  static async create(
    of: DispatchSource,
    first: () => SelectedVariant,
    isFound: boolean,
  ): Promise<RunTimeDispatcher> {
    const asked = isFound ? await RunTimeDispatcher.#asked(of) : null
    if (asked) return asked
    const selection = await RunTimeDispatcher.#made(of, first())
    try {
      await selection.#measured.observe(selection.#now)
    } catch (e) {
      selection.free()
      throw e
    }
    return selection
  }

  static async #made(
    of: DispatchSource,
    first: SelectedVariant,
    found = new Map<string, KnownFillRatio>(),
  ): Promise<RunTimeDispatcher> {
    return new RunTimeDispatcher(of, first, await DispatchBranches.create(of, first), found)
  }

  /**
   * Measures the bound data with the launches of a builder. Null if no schedule can measure, or its launches are rejected or cannot run
   * alone.
   */
  static async #asked(of: DispatchSource): Promise<RunTimeDispatcher | null> {
    let made: RunTimeDispatcher | undefined
    try {
      made = await RunTimeDispatcher.#made(of, covering(of, 0))
      const { findings, commands } = made.#now
      if (findings.length > 0 && commands.length > 0) {
        await made.#measured.observe(made.#now)
        for (const branch of [made.#now, ...made.#measured.others(made.#now)])
          await made.#measured.sample(branch, 'given')
        await made.#decide()
        const { variant, overflowed, counted } = made.#decided()
        if (variant.selection.text === made.#now.text) return made
        // No data has been updated yet, so the selected schedule may use its own storage.
        const other = await RunTimeDispatcher.#made(of, variant, made.#measured.found)
        made.free()
        made = other
        made.#overflowed = overflowed
        made.#covered = fillRatiosOf(of, made.#chosen, made.#measured.found, counted)
        await made.#measured.observe(made.#now)
        return made
      }
    } catch (e) {
      if (!(e instanceof SptError)) throw e
    }
    made?.free()
    return null
  }

  get kernel(): CompiledSchedule {
    return this.#now.compiled
  }

  get owner(): Executable {
    return this.#branches.first.executable
  }

  get executable(): Executable {
    return this.#now.executable
  }

  get selection(): RunSelection {
    const predicted = [...this.#branches].map(({ text, times, findings: [own] }) => ({
      text,
      // Schedules without a measured fill ratio have a constant time.
      milliseconds: times.at(own ? (this.#measured.found.get(own.statistic)?.value ?? 1) : 0),
    }))
    const { since } = this.#measured
    const fillRatios = Object.entries(this.#covered).map(
      ([name, share]) => [name, { ...share, measured: since.get(name) ?? null }] as const,
    )
    return {
      ...this.#chosen,
      fillRatios: byName(fillRatios),
      overflowedSchedule: this.#overflowed,
      hindsightSchedule: this.#regret(),
      estimates: predicted,
    }
  }

  #regret(): string | null {
    if (!Object.keys(this.#covered).some((name) => this.#measured.since.has(name))) return null
    const now = resultOrError(() => this.#decided().variant.selection.text)
    return now instanceof SptError || now === this.#now.text ? null : now
  }

  next(): Promise<void> | undefined {
    this.#tried.clear()
    const deciding = this.#measured.isNews ? this.#decide() : undefined
    return deciding ? deciding.then(() => this.#spare()) : this.#spare()
  }

  /**
   * Before a run that updates tensors in place: measures again if the schedule overflowed before, and throws if it would overflow, so that
   * no tensor is partly updated.
   */
  #spare(): Promise<void> | undefined {
    const now = this.#now
    if (!this.#measured.full.has(now) || !updates(now) || now.commands.length === 0) return undefined
    return this.#measured.sample(now, 'sample').then(async () => {
      const error = this.#measured.full.has(now) && (await overflowError(now))
      if (error) throw this.#unchanged(error)
    })
  }

  /** The error, with the reason why no other schedule is usable. */
  #unchanged(error: SptError): SptError {
    const { text } = this.#decided().variant.selection
    const tensors = this.#branches.elsewhere(text)
    return tensors ? storedElsewhere(error, text, tensors) : error
  }

  #decide(): Promise<void> | undefined {
    this.#measured.isNews = false
    const { variant, overflowed, counted } = this.#decided(this.#measured.full.has(this.#now))
    const chosen = variant.selection
    const isKnown = this.#branches.elsewhere(chosen.text) !== undefined
    const taken = this.#branches.with(variant, (branch) => {
      this.#overflowed = overflowed
      if (branch !== this.#now) [this.#runs, this.#sampled] = [0, 1]
      this.#now = branch
      this.#chosen = chosen
      this.#measured.since.clear()
      this.#covered = fillRatiosOf(this.#of, chosen, this.#measured.found, counted)
      return this.#measured.observe(branch)
    })
    // A schedule that turns out not to share memory is skipped.
    const again = () => !isKnown && this.#branches.elsewhere(chosen.text) !== undefined
    return taken?.then(() => (again() ? this.#decide() : undefined))
  }

  async overflowed(error: SptError): Promise<SptError | undefined> {
    const full = this.#now
    this.#tried.add(full)
    await this.awaitMeasurements()
    await this.#measured.read(full, 'last run')
    // Other fill ratios may never have been measured on these data, so they are sampled now.
    for (const branch of this.#measured.others(this.#now))
      if (!this.#tried.has(branch)) await this.#measured.sample(branch, 'sample')
    const isOver = updates(full)
    await this.#decide()
    if (!isOver && !this.#tried.has(this.#now)) return undefined
    return this.#measured.full.has(this.#now) ? this.#unchanged(error) : error
  }

  ran(milliseconds?: number): Promise<void> | undefined {
    const now = this.#now
    const [own] = now.findings
    if (!own && milliseconds !== undefined) now.times.add(0, milliseconds)
    const others = ++this.#runs < this.#sampled ? [] : this.#measured.others(this.#now)
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

  awaitMeasurements(): Promise<void> {
    return this.#readings.known()
  }

  async precompile(): Promise<void> {
    for (const share of [0, 1]) await this.#branches.with(covering(this.#of, share), () => undefined)
    for (const name of this.#measured.live)
      await this.#branches.with(covering(this.#of, 1, name), () => undefined)
  }

  write(name: string, update: Tensor | BareValues): Promise<void> {
    return this.#branches.write(name, update)
  }

  rebuilt(device: Device): Promise<RunTimeDispatcher> {
    const of: DispatchSource = {
      ...this.#of,
      compile: (variant) => this.#of.compile(variant, device),
      bind: (variant, compiled) => this.#branches.bind(variant, compiled),
    }
    return RunTimeDispatcher.create(of, () => this.#decided().variant, false)
  }

  free(): void {
    this.#measured.isFreed = true
    this.#branches.free()
  }

  /** Selects by the latest measurements. @param here true to consider only schedules that share this memory */
  #decided(here = false): SelectionWithinCapacity {
    const found = new Map([...this.#measured.found].map(([name, { value }]) => [name, value]))
    const full = new Map([...this.#measured.full].map((b) => [b.text, b]))
    const isElsewhere = (text: string): boolean => here && this.#branches.elsewhere(text) !== undefined
    return selectWithinCapacity(this.#of, found, (text) => full.get(text), isElsewhere)
  }
}
