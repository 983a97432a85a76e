/** Schedules between which the runs of a binding switch. They share the memory of inputs and outputs; each is prepared on first use. */
import { resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { lazy } from '../../ast/lazy.ts'
import type { Bound } from '../../run/bind/index.ts'
import { type BareValues, withValues } from '../../run/bind/results/update-values.ts'
import { commonBuffers } from '../../run/execution/launch-commands.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { bindCandidate, type Candidate, kernelOf, textOf } from '../built/candidates.ts'
import { equalRatios } from './facts.ts'
import { determinesFillRatio } from './fill-ratio.ts'
import { type LiveRatios, PreparedSchedule } from './prepared-schedule.ts'
import type { Selector } from './selector.ts'

/** How schedules are compiled and bound. `device`: undefined for that of the family. */
export interface Preparation {
  readonly device?: Device
  bind(candidate: Candidate): Bound
}

export const FROM_INPUTS: Preparation = { bind: bindCandidate }

export class PreparedSchedules {
  /** Null for a fixed schedule. */
  readonly #selector: Selector | null
  readonly #from: Preparation
  readonly #prepared = new Map<string, PreparedSchedule>()
  /** Written values by tensor, for schedules that are prepared later. */
  readonly #written = new Map<string, Tensor | BareValues>()
  /** Calls of the schedules that cannot share memory, with their `inout` tensors in another format. */
  readonly elsewhere = new Map<string, readonly string[]>()
  /** The schedules whose launches measure the fill ratios and nothing else. */
  readonly measuring = lazy(async (): Promise<ReadonlySet<PreparedSchedule>> => {
    const found = new Set<PreparedSchedule>()
    for (const name of this.live.keys()) {
      const measures = (s: PreparedSchedule): boolean => s.findings.some((f) => f.statistic === name)
      const prepared = [...found].some(measures) ? null : await this.#scheduleMeasuring(name)
      if (prepared) found.add(prepared)
    }
    return found
  })
  /** The first schedule, which owns the memory. */
  readonly first: PreparedSchedule

  constructor(selector: Selector | null, first: PreparedSchedule, from = FROM_INPUTS) {
    this.#selector = selector
    this.#from = from
    this.first = first
    this.#prepared.set(first.text, first)
  }

  [Symbol.iterator](): Iterator<PreparedSchedule> {
    return this.#prepared.values()
  }

  get live(): LiveRatios {
    return this.#selector?.live ?? new Map()
  }

  /** Returns a schedule; undefined if it cannot share memory. */
  async get(candidate: Candidate): Promise<PreparedSchedule | undefined> {
    const text = textOf(candidate)
    return this.#prepared.get(text) ?? (this.elsewhere.has(text) ? undefined : this.#another(candidate, text))
  }

  /** Prepares another schedule with the values written so far; undefined if the schedule stores an `inout` tensor in another format. */
  async #another(candidate: Candidate, text: string): Promise<PreparedSchedule | undefined> {
    const compiled = await candidate.compile(this.#from.device)
    const bound = withWritten(this.#from.bind(candidate), this.#written)
    const { program } = compiled
    const buffers = commonBuffers(this.first.executable, { program, bound })
    const apart = program.plan.buffers.flatMap(({ name, role }) =>
      role === 'inout' && !buffers.has(name) ? [name] : [],
    )
    if (apart.length > 0) {
      this.elsewhere.set(text, apart)
      return undefined
    }
    const prepared = await PreparedSchedule.create(this.#selector, text, compiled, bound, buffers)
    this.#prepared.set(text, prepared)
    return prepared
  }

  /**
   * Returns a schedule whose launches measure a fill ratio and nothing else; null if there is none. Searches by skipping
   * the selected schedules, with 1 and then 0 for the other fill ratios.
   */
  async #scheduleMeasuring(name: string): Promise<PreparedSchedule | null> {
    const selector = this.#selector!
    for (const others of [1, 0]) {
      const passed = new Set<string>()
      for (;;) {
        const facts = equalRatios(selector.live, others, name)
        const candidate = resultOrError(() => selector.select([facts], passed))
        if (candidate instanceof SptError) break
        const { runtimeLists = [] } = kernelOf(candidate)
        if (runtimeLists.some((f) => determinesFillRatio(f, selector.live.get(name)!))) {
          const prepared = await valueOrError(() => this.get(candidate))
          if (prepared && !(prepared instanceof SptError) && prepared.commands.length > 0) return prepared
        }
        passed.add(textOf(candidate))
      }
    }
    return null
  }

  /** Prepares schedules on another device, with the values that were bound or written until now. */
  onDevice(device: Device): Preparation {
    const prepared = new Map([...this].map(({ text, executable }) => [text, executable.bound]))
    const written = new Map(this.#written)
    const { bind } = this.#from
    return { device, bind: (c) => prepared.get(textOf(c)) ?? withWritten(bind(c), written) }
  }

  async write(name: string, update: Tensor | BareValues): Promise<void> {
    const all = [...this].map(({ executable }) => ({
      executable,
      written: withValues(executable.bound, name, update),
    }))
    this.#written.set(name, update)
    const there = new Set<unknown>()
    for (const { executable, written } of all) {
      const fresh = written.buffers.filter((b) => !there.has(executable.memory.get(b) ?? b))
      for (const b of written.buffers) there.add(executable.memory.get(b))
      await executable.rebind(written.bound, fresh)
    }
  }

  free(): void {
    for (const prepared of this) if (prepared !== this.first) prepared.executable.free()
    this.first.executable.free()
  }
}

function withWritten(from: Bound, written: ReadonlyMap<string, Tensor | BareValues>): Bound {
  let bound = from
  for (const [name, update] of written) bound = withValues(bound, name, update).bound
  return bound
}
