/**
 * Schedule of each run of a binding: always the same (which may be a plan that selects on the device), or selected by the host. Then the
 * launches of format builders measure the fill ratios on the data of the run, and the run waits for them.
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
import type { Selection } from './dispatch-conditions.ts'
import { equalRatios, givenFacts } from './facts.ts'
import { type FillRatio, type RunSelection, SparsityReadback } from './last-run.ts'
import { PreparedSchedule } from './prepared-schedule.ts'
import { FROM_INPUTS, type Preparation, PreparedSchedules } from './prepared-schedules.ts'
import { withAlternatives } from './schedules.ts'
import type { Selector } from './selector.ts'

export class Runs {
  /** Null for a fixed schedule. */
  readonly #selector: Selector | null
  readonly #prepared: PreparedSchedules
  #now: PreparedSchedule
  #candidate: Candidate
  /** Latest measured fill ratios, by name. */
  readonly #found: Map<string, number>
  /** Origin of the measured fill ratios. */
  #source: FillRatio['source'] = 'given'
  /** Calls of the schedules that exceed their capacity on the latest data. */
  readonly #full = new Set<string>()
  /** The first of them that was selected. */
  #overflowed: string | null = null
  /** The alternatives that the latest run selected, with and without regard to capacities; undefined before they have been read back. */
  #selectedOnDevice: readonly number[] | undefined
  readonly #readings = new SparsityReadback()

  private constructor(
    selector: Selector | null,
    first: Candidate,
    prepared: PreparedSchedule,
    from?: Preparation,
    found?: ReadonlyMap<string, number>,
  ) {
    this.#selector = selector
    this.#prepared = new PreparedSchedules(selector, prepared, from)
    this.#now = prepared
    this.#candidate = first
    this.#found = new Map(found)
  }

  /** Runs always use this schedule. */
  static fixed(compiled: CompiledCode, executable: Executable, selection: Selection | null = null): Runs {
    const { plan } = executable.program
    const candidate = { ...candidateOf(compiled, {}), selection: withAlternatives(selection, plan) }
    const prepared = new PreparedSchedule(null, textOf(candidate), compiled, executable)
    return new Runs(null, candidate, prepared)
  }

  /**
   * Prepares the runs of a binding, whose schedules `selector` selects.
   * @param first - Default: selected by measurements of the device, if it may measure the fill ratios, so that the host need not read the
   * data; otherwise on the host
   */
  static async create(selector: Selector, first?: Candidate): Promise<Runs> {
    const combined = first?.selection?.alternatives ? first : selector.onDevice()
    if (combined) return Runs.#onDevice(selector, combined)
    const measured = !first && selector.isMeasuredFirst ? await Runs.#measuredFirst(selector) : null
    return measured ?? Runs.#start(selector, first ?? selector.select())
  }

  /** Prepares runs that select on the device. The schedule of the bound data is known before the first run if the measuring launches can run alone. */
  static async #onDevice(selector: Selector, combined: Candidate): Promise<Runs> {
    const compiled = await combined.compile()
    const text = textOf(combined)
    const prepared = await PreparedSchedule.create(selector, text, compiled, bindCandidate(combined))
    const runs = new Runs(null, combined, prepared)
    if (selector.isMeasuredFirst && prepared.commands.length > 0) {
      await compiled.device.run(prepared.commands)
      await runs.#read()
    }
    return runs
  }

  /** Reads what the latest run measured, and the selected alternative. */
  async #read(): Promise<void> {
    const now = this.#now
    for (const [name, ratio] of await now.read()) this.#found.set(name, ratio)
    const { branches } = now.executable.program.plan
    if (branches) this.#selectedOnDevice = Array.from(await now.executable.values(branches.choice), Number)
  }

  static async #start(
    selector: Selector | null,
    first: Candidate,
    from = FROM_INPUTS,
    found?: ReadonlyMap<string, number>,
  ): Promise<Runs> {
    const compiled = await first.compile(from.device)
    const prepared = await PreparedSchedule.create(selector, textOf(first), compiled, from.bind(first))
    return new Runs(selector, first, prepared, from, found)
  }

  /** Measures the bound data. Null if no launches can, or if they are rejected. */
  static async #measuredFirst(selector: Selector): Promise<Runs | null> {
    let runs: Runs | undefined
    try {
      runs = await Runs.#start(selector, selector.select([equalRatios(selector.live, 0)]))
      if ((await runs.#prepared.measuring()).size > 0) {
        const candidate = await runs.#decide(true)
        if (textOf(candidate) === runs.#now.text) return runs
        // No data has been updated yet, so the selected schedule may use its own storage.
        const other = await Runs.#start(selector, candidate, FROM_INPUTS, runs.#found)
        for (const text of runs.#full) other.#full.add(text)
        other.#overflowed = runs.#overflowed
        runs.free()
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
    const { selection } = this.#candidate
    if (!selection) return null
    const { alternatives = [] } = selection
    const [taken, wanted] = this.#selectedOnDevice ?? []
    const known = taken === undefined ? selection : { ...selection, ...alternatives[taken]!, alternatives }
    const { unknown, live } = this.#selector ?? { unknown: new Set(), live: this.#found }
    const ratios = [...live.keys()].flatMap((name): [string, FillRatio][] => {
      const measured = this.#found.get(name) ?? null
      if (measured !== null) return [[name, { value: measured, source: this.#source, measured }]]
      const source = unknown.has(name) ? 'unknown' : 'given'
      return name in selection.values
        ? [[name, { value: Number(selection.values[name]), source, measured }]]
        : []
    })
    const overflowed = taken === undefined || wanted === taken ? null : alternatives[wanted!]!.text
    return {
      ...known,
      fillRatios: byName(ratios),
      overflowedSchedule: this.#overflowed ?? overflowed,
    }
  }

  /** Runs `work` under the selected schedule. After an overflow that could not be measured before, runs it again under another one. */
  async run<T>(work: (executable: Executable) => Promise<T>): Promise<T> {
    if (this.#selector) await this.#decide()
    for (;;) {
      const now = this.#now
      const done = await resultOrOverflow(() => work(now.executable))
      if (!(done instanceof SptError)) {
        const reading = this.#ran()
        if (reading) await reading
        return done
      }
      this.#full.add(now.text)
      if (!this.#selector || now.updates || now.commands.length > 0) throw done
      await this.#decide()
    }
  }

  /** Measures, and selects the schedule of the next run. `isFirst`: before data are updated, so that schedules may use their own storage. */
  async #decide(isFirst = false): Promise<Candidate> {
    const sampled = new Set<PreparedSchedule>()
    const sample = async (prepared: PreparedSchedule): Promise<void> => {
      sampled.add(prepared)
      this.#source = isFirst ? 'given' : 'last run'
      for (const [name, ratio] of await prepared.sample()) this.#found.set(name, ratio)
      if (prepared.isLimited && (await prepared.overflow())) this.#full.add(prepared.text)
      else this.#full.delete(prepared.text)
    }
    for (const prepared of await this.#prepared.measuring()) await sample(prepared)
    this.#overflowed = null
    const passed = new Set<string>()
    let first: Candidate | undefined
    /** The first selected schedule whose lists exceed their capacity. */
    let full: { readonly prepared: PreparedSchedule; readonly candidate: Candidate } | undefined
    for (;;) {
      const candidate = resultOrError(() => this.#selector!.select([givenFacts(this.#found)], passed))
      if (candidate instanceof SptError) {
        if (!first || candidate.code !== 'choose/no-match') throw candidate
        if (isFirst) return first
        const now = this.#now
        // If no selected schedule can share memory, that of the last run continues.
        if (!full && now.isLimited && now.commands.length > 0 && !sampled.has(now)) await sample(now)
        const error = await (full?.prepared ?? (this.#full.has(now.text) ? now : undefined))?.overflow()
        const [apart] = [...this.#prepared.elsewhere].filter(([other]) => passed.has(other))
        if (!error) return this.#candidate
        if (full) [this.#now, this.#candidate] = [full.prepared, full.candidate]
        throw apart ? storedElsewhere(error, ...apart) : error
      }
      first ??= candidate
      const prepared = await this.#prepared.get(candidate)
      if (prepared?.isLimited && prepared.commands.length > 0 && !sampled.has(prepared))
        await sample(prepared)
      const text = textOf(candidate)
      if (this.#full.has(text)) {
        this.#overflowed ??= text
        full ??= prepared && { prepared, candidate }
      } else if (prepared || isFirst) {
        this.#now = prepared ?? this.#now
        this.#candidate = candidate
        return candidate
      }
      passed.add(text)
    }
  }

  /** Starts the readback of what a run measured and selected. */
  #ran(): Promise<void> | undefined {
    const { findings, commands, executable } = this.#now
    const isDeciding = executable.program.plan.branches !== undefined
    if (!isDeciding && (findings.length === 0 || commands.length > 0)) return undefined
    const read = async (): Promise<void> => {
      await this.#read()
      this.#source = 'last run'
    }
    // On the CPU, no work is in flight.
    if (executable.program.device.kind === 'cpu') return read()
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
    for (const facts of this.#selector ? [equalRatios(live, 0), equalRatios(live, 1), ...ones] : [])
      await this.#prepared.get(this.#selector!.select([facts]))
  }

  write(name: string, update: Tensor | BareValues): Promise<void> {
    this.#full.clear()
    return this.#prepared.write(name, update)
  }

  /** Rebuilds on another device, with the values that were bound or written until now. */
  rebuilt(device: Device): Promise<Runs> {
    return Runs.#start(this.#selector, this.#candidate, this.#prepared.onDevice(device))
  }

  free(): void {
    this.#prepared.free()
  }
}

/** Returns the error if a list exceeds its capacity. Other errors are thrown. */
async function resultOrOverflow<T>(work: () => Promise<T>): Promise<T | SptError> {
  try {
    return await work()
  } catch (e) {
    if (!isOverflow(e)) throw e
    return e
  }
}
