/** Schedules between which the runs of a binding switch. They share the memory of inputs and outputs; each is prepared on first use. */
import { valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import type { Bound } from '../../run/bind/index.ts'
import { type BareValues, withValues } from '../../run/bind/results/update-values.ts'
import { commonBuffers } from '../../run/execution/launch-commands.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { bindCandidate, type Candidate, textOf } from '../built/candidates.ts'
import type { LastRun } from './last-run.ts'
import { schedulesMeasuring } from './next-schedule.ts'
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
  readonly #last: LastRun
  readonly #from: Preparation
  readonly #prepared = new Map<string, PreparedSchedule>()
  /** Written values by tensor, for schedules that are prepared later. */
  readonly #written = new Map<string, Tensor | BareValues>()
  /** Schedules that measure a fill ratio if others do not, by its name; `null` if none can. */
  readonly #measuring = new Map<string, PreparedSchedule | null>()
  /** The first schedule, which owns the memory. */
  readonly first: PreparedSchedule

  constructor(selector: Selector | null, last: LastRun, first: PreparedSchedule, from = FROM_INPUTS) {
    this.#selector = selector
    this.#last = last
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

  /** Passes a prepared schedule to `use`, at once if it exists. Undefined if it cannot share memory. */
  with(
    candidate: Candidate,
    use: (prepared: PreparedSchedule) => Promise<void> | undefined,
  ): Promise<void> | undefined {
    const text = textOf(candidate)
    if (this.#last.elsewhere.has(text)) return undefined
    const known = this.#prepared.get(text)
    if (known) return use(known)
    return this.#another(candidate, text).then((prepared) => prepared && use(prepared))
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
      this.#last.elsewhere.set(text, apart)
      return undefined
    }
    const prepared = await PreparedSchedule.create(this.#selector, text, compiled, bound, buffers)
    this.#prepared.set(text, prepared)
    return prepared
  }

  /** Prepares schedules that measure the fill ratios which the runs of `now` do not measure; undefined if all are there. */
  observe(now: PreparedSchedule): Promise<void> | undefined {
    const unseen = [...this.live.keys()].filter((name) => !now.measures(name) && !this.#measuring.has(name))
    if (unseen.length === 0) return undefined
    const all = async (): Promise<void> => {
      for (const name of unseen) this.#measuring.set(name, await this.#scheduleMeasuring(name))
    }
    return all()
  }

  /** Returns a schedule whose launches measure a fill ratio without the rest of the kernel; null if there is none. */
  async #scheduleMeasuring(name: string): Promise<PreparedSchedule | null> {
    for (const candidate of schedulesMeasuring(this.#selector!, name)) {
      let found: PreparedSchedule | null = null
      const error = await valueOrError(async () =>
        this.with(candidate, (prepared) => {
          if (prepared.commands.length > 0) found = prepared
          return undefined
        }),
      )
      if (found && !error) return found
    }
    return null
  }

  /** Schedules to sample: those that measure fill ratios which the runs of `now` do not measure, and those that overflowed. */
  others(now: PreparedSchedule): readonly PreparedSchedule[] {
    const names = [...this.live.keys()].filter((name) => !now.measures(name))
    const full = [...this].filter((s) => this.#last.full.has(s.text) && s !== now && s.commands.length > 0)
    return [...new Set([...names.flatMap((name) => this.#measuring.get(name) ?? []), ...full])]
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
