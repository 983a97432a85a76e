/** Branches between which a dispatch selects at run time. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Statistic } from '../../elaborate/index.ts'
import { capacityCounts, type RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import type { Bound } from '../../run/bind/index.ts'
import { type BareValues, withValues } from '../../run/bind/results/update-values.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { Executable } from '../../run/execution/execute.ts'
import { commandsMeasuring, commonBuffers } from '../../run/execution/shared-buffers.ts'
import type { Command, Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { CompiledSchedule } from '../compiled/compiled.ts'
import type { ErrorSources } from '../programs/error-sources.ts'
import { liveOf } from './dispatcher.ts'
import { determinesFillRatio } from './fill-ratio.ts'
import type { Schedulable, SelectedKernel } from './schedule-selection.ts'

/** A kernel that can be compiled under different schedules. */
export interface Compilable extends Schedulable<Compilable>, Pick<ErrorSources, 'sources'> {
  compileSchedule(device: Device): Promise<CompiledSchedule>
}
export type SelectedVariant = SelectedKernel<Compilable>

export interface DispatchSource {
  /** Statistics in the conditions of the dispatch, by name. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** Names of the statistics that only runs can measure. */
  readonly unknown: ReadonlySet<string>
  /** Selects a schedule by measured fill ratios. `passed`: schedules to skip. */
  choose(found: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): SelectedVariant
  /** Compiles a schedule. `device`: another device than that of the dispatch. */
  compile(variant: SelectedVariant, device?: Device): Promise<CompiledSchedule>
  bind(variant: SelectedVariant, compiled: CompiledSchedule): Bound
}

/** The schedule selected if all fill ratios were `share`, except that of `one`, which is 0. */
export const covering = (
  of: DispatchSource,
  share: number,
  one?: string,
  passed?: ReadonlySet<string>,
): SelectedVariant =>
  of.choose(new Map(liveOf(of.statistics).map(([name]) => [name, name === one ? 0 : share])), passed)

/**
 * Schedules that measure a fill ratio, found by repeatedly skipping the selected one: the first if the other fill ratios are 1, and the
 * first if they are 0.
 */
export function* telling(of: DispatchSource, name: string): Generator<SelectedVariant, void> {
  const statistic = of.statistics.get(name)!
  for (const others of [1, 0]) {
    const passed = new Set<string>()
    for (;;) {
      const variant = resultOrError(() => covering(of, others, name, passed))
      if (variant instanceof SptError) break
      if (
        statistic.kind === 'fill_ratio' &&
        (variant.kernel.compilation.kernel.runtimeLists ?? []).some((f) => determinesFillRatio(f, statistic))
      ) {
        yield variant
        break
      }
      passed.add(variant.selection.text)
    }
  }
}

interface Finding {
  readonly statistic: string
  readonly found: RuntimeLists
  /** Number of elements of the dense tensor. */
  readonly elements: number
}

/** A schedule of the dispatch, prepared for the data. */
export interface Branch {
  readonly text: string
  readonly compiled: CompiledSchedule
  readonly executable: Executable
  /** Fill ratios that its runs measure. */
  readonly findings: readonly Finding[]
  /** The launches that measure fill ratios and overflows, without the rest of the kernel. Empty if they cannot run alone. */
  readonly commands: readonly Command[]
  readonly times: FillRatioTimes
}

export const finds = ({ findings }: Branch, statistic: string): boolean =>
  findings.some((f) => f.statistic === statistic)

function branchOf(
  statistics: ReadonlyMap<string, Statistic>,
  text: string,
  compiled: CompiledSchedule,
  executable: Executable,
): Branch {
  const { plan } = compiled.program
  const { source } = compiled.compilation
  const extents = extentsOf(source, executable.bound.params)
  const findings = liveOf(statistics).flatMap(([statistic, c]): Finding[] => {
    // Counts that no statement reads have no buffer.
    const isThere = (counts: string): boolean => plan.buffers.some((b) => b.name === counts)
    const found = plan.runtimeLists?.find(
      (f) => determinesFillRatio(f, c) && f.parts.every((p) => isThere(p.counts)),
    )
    const { axes } = source.buffers.find((b) => b.name === c.tensor)!
    return found ? [{ statistic, found, elements: axes.reduce((n, a) => n * extents.get(a)!, 1) }] : []
  })
  const counts = findings.flatMap((f) => f.found.parts.map((p) => p.counts))
  const commands = commandsMeasuring(executable, [...counts, ...capacityCounts(plan)])
  return { text, compiled, executable, findings, commands, times: new FillRatioTimes() }
}

// Linear model of a schedule's time as a function of the fill ratio, fitted to measured times.

/** Maximum number of measurements that are kept; the oldest are dropped. */
const MOST = 32

export class FillRatioTimes {
  readonly #measured: { readonly covered: number; readonly milliseconds: number }[] = []

  add(covered: number, milliseconds: number): void {
    this.#measured.push({ covered, milliseconds })
    if (this.#measured.length > MOST) this.#measured.shift()
  }

  /** Milliseconds at a fill ratio, by least squares. `null` without measurements, or if only another fill ratio was measured. */
  at(covered: number): number | null {
    const all = this.#measured
    if (all.length === 0) return null
    const mean = (of: (m: (typeof all)[number]) => number): number =>
      all.reduce((sum, m) => sum + of(m), 0) / all.length
    const [x, y] = [mean((m) => m.covered), mean((m) => m.milliseconds)]
    const spread = mean((m) => (m.covered - x) ** 2)
    if (all.every((m) => m.covered === all[0]!.covered)) return covered === all[0]!.covered ? y : null
    return y + ((covered - x) * mean((m) => (m.covered - x) * (m.milliseconds - y))) / spread
  }
}

/** Prepared schedules of a dispatch that share the memory of inputs and outputs; each is created on first use. */
export class DispatchBranches {
  readonly #of: DispatchSource
  readonly #made = new Map<string, Branch>()
  /** Schedules that cannot share memory, by text, with their `inout` tensors in another format. */
  readonly #elsewhere = new Map<string, readonly string[]>()
  /** Written values by tensor, for schedules that are prepared later. */
  readonly #written = new Map<string, Tensor | BareValues>()
  /** The first schedule, which owns the memory. */
  readonly first: Branch

  private constructor(of: DispatchSource, first: Branch) {
    this.#of = of
    this.first = first
    this.#made.set(first.text, first)
  }

  static async create(of: DispatchSource, first: SelectedVariant): Promise<DispatchBranches> {
    const compiled = await of.compile(first)
    const { source } = compiled.compilation
    const executable = await Executable.create(compiled.program, of.bind(first, compiled), { source })
    return new DispatchBranches(of, branchOf(of.statistics, first.selection.text, compiled, executable))
  }

  [Symbol.iterator](): Iterator<Branch> {
    return this.#made.values()
  }

  /** The tensors that keep a schedule from sharing memory; undefined if none is known. */
  elsewhere(text: string): readonly string[] | undefined {
    return this.#elsewhere.get(text)
  }

  /** Passes the branch of a schedule to `use`, at once if the branch exists. Undefined if the schedule cannot share memory. */
  with(
    variant: SelectedVariant,
    use: (branch: Branch) => Promise<void> | undefined,
  ): Promise<void> | undefined {
    const { text } = variant.selection
    if (this.#elsewhere.has(text)) return undefined
    const known = this.#made.get(text)
    if (known) return use(known)
    return this.#another(variant, text).then((made) => made && use(made))
  }

  /** Prepares another schedule with the values written so far; undefined if the schedule stores an `inout` tensor in another format. */
  async #another(variant: SelectedVariant, text: string): Promise<Branch | undefined> {
    const compiled = await this.#of.compile(variant)
    const bound = this.bind(variant, compiled)
    const { program, compilation } = compiled
    const buffers = commonBuffers(this.first.executable, { program, bound })
    const apart = program.plan.buffers.filter((b) => b.role === 'inout' && !buffers.has(b.name))
    if (apart.length > 0) {
      this.#elsewhere.set(
        text,
        apart.map((b) => b.name),
      )
      return undefined
    }
    const shared = { buffers, isOwn: true, release: () => {} }
    const { source } = compilation
    const executable = await Executable.create(program, bound, { source, shared })
    const made = branchOf(this.#of.statistics, text, compiled, executable)
    this.#made.set(text, made)
    return made
  }

  /** Binds the data, with the values written so far. */
  bind(variant: SelectedVariant, compiled: CompiledSchedule): Bound {
    let bound = this.#of.bind(variant, compiled)
    for (const [name, update] of this.#written) bound = withValues(bound, name, update).bound
    return bound
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
    for (const branch of this) if (branch !== this.first) branch.executable.free()
    this.first.executable.free()
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
