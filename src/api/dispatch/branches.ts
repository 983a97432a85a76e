/** Schedules of one kernel on the same data, between which a dispatch switches at run time. */
import { capacityCounts, type RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Bound } from '../../run/bind/index.ts'
import { type BareValues, withValues } from '../../run/bind/results/update-values.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { SharedMemory } from '../../run/execution/external-memory.ts'
import { commandsMeasuring, commonBuffers } from '../../run/execution/launch-commands.ts'
import { overflow } from '../../run/execution/overflow-error.ts'
import type { Command } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { bindCandidate, type Candidate, textOf } from '../built/candidates.ts'
import type { CompiledCode } from '../built/code.ts'
import type { FillRatioStatistic } from './dispatch-conditions.ts'
import { determinesFillRatio } from './fill-ratio.ts'

/** Fill ratios of formats built at run time in conditions of a dispatch, by name. */
export type LiveRatios = ReadonlyMap<string, FillRatioStatistic>

interface Finding {
  readonly statistic: string
  readonly found: RuntimeLists
  /** Number of elements of the dense tensor. */
  readonly elements: number
}

/** A schedule, prepared for the data. */
export class Branch {
  readonly text: string
  readonly compiled: CompiledCode
  readonly executable: Executable
  /** Fill ratios that its runs measure. */
  readonly findings: readonly Finding[]
  readonly times = new FillRatioTimes()
  /** By the sizes and scalars of the bound data. */
  readonly #commands = memoize((_params: Bound['params']) => {
    const counts = this.findings.flatMap((f) => f.found.parts.map((p) => p.counts))
    return commandsMeasuring(this.executable, [...counts, ...capacityCounts(this.#plan)])
  })

  constructor(live: LiveRatios, text: string, compiled: CompiledCode, executable: Executable) {
    this.text = text
    this.compiled = compiled
    this.executable = executable
    const { plan } = compiled.program
    const { source } = compiled
    const extents = extentsOf(source, executable.bound.params)
    this.findings = [...live].flatMap(([statistic, c]): Finding[] => {
      // Counts that no statement reads have no buffer.
      const isThere = (counts: string): boolean => plan.buffers.some((b) => b.name === counts)
      const found = plan.runtimeLists?.find(
        (f) => determinesFillRatio(f, c) && f.parts.every((p) => isThere(p.counts)),
      )
      const { axes } = source.buffers.find((b) => b.name === c.tensor)!
      return found ? [{ statistic, found, elements: axes.reduce((n, a) => n * extents.get(a)!, 1) }] : []
    })
  }

  static async create(
    live: LiveRatios,
    candidate: Candidate,
    compiled: CompiledCode,
    bound: Bound,
    shared?: SharedMemory,
  ): Promise<Branch> {
    const { program, source } = compiled
    const executable = await Executable.create(program, bound, { source, ...(shared && { shared }) })
    return new Branch(live, textOf(candidate), compiled, executable)
  }

  finds(statistic: string): boolean {
    return this.findings.some((f) => f.statistic === statistic)
  }

  /** The launches that measure fill ratios and overflows, without the rest of the kernel. Empty if they cannot run alone. */
  get commands(): readonly Command[] {
    return this.#commands(this.executable.bound.params)
  }

  /** True if a run modifies `inout` tensors, and so cannot be repeated. */
  get updates(): boolean {
    return this.#plan.buffers.some((b) => b.role === 'inout')
  }

  /** The overflow error of the latest measurement; undefined if the capacity suffices. */
  overflow() {
    const { executable } = this
    return overflow(this.#plan, (counts) => executable.values(counts), executable.bound.params)
  }

  get #plan() {
    return this.executable.program.plan
  }
}

/** Maximum number of measurements that are kept; the oldest are dropped. */
const MOST = 32

/** Linear model of a schedule's time as a function of the fill ratio, fitted to measured times. */
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

/** Prepared schedules that share the memory of inputs and outputs; each is created on first use. */
export class Branches {
  readonly #live: LiveRatios
  readonly #made = new Map<string, Branch>()
  /** Schedules that cannot share memory, by text, with their `inout` tensors in another format. */
  readonly #elsewhere = new Map<string, readonly string[]>()
  /** Written values by tensor, for schedules that are prepared later. */
  readonly #written = new Map<string, Tensor | BareValues>()
  /** The first schedule, which owns the memory. */
  readonly first: Branch

  constructor(live: LiveRatios, first: Branch) {
    this.#live = live
    this.first = first
    this.#made.set(first.text, first)
  }

  [Symbol.iterator](): Iterator<Branch> {
    return this.#made.values()
  }

  /** The tensors that keep a schedule from sharing memory; undefined if none is known. */
  elsewhere(text: string): readonly string[] | undefined {
    return this.#elsewhere.get(text)
  }

  /** Passes the branch of a schedule to `use`, at once if the branch exists. Undefined if the schedule cannot share memory. */
  with(candidate: Candidate, use: (branch: Branch) => Promise<void> | undefined): Promise<void> | undefined {
    const text = textOf(candidate)
    if (this.#elsewhere.has(text)) return undefined
    const known = this.#made.get(text)
    if (known) return use(known)
    return this.#another(candidate, text).then((made) => made && use(made))
  }

  /** Prepares another schedule with the values written so far; undefined if the schedule stores an `inout` tensor in another format. */
  async #another(candidate: Candidate, text: string): Promise<Branch | undefined> {
    const compiled = await candidate.compile()
    const bound = withWritten(candidate, this.#written)
    const { program } = compiled
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
    const made = await Branch.create(this.#live, candidate, compiled, bound, shared)
    this.#made.set(text, made)
    return made
  }

  /** Returns a function that binds a schedule with the values written until now. */
  snapshot(): (candidate: Candidate) => Bound {
    const made = new Map([...this].map(({ text, executable }) => [text, executable.bound]))
    const written = new Map(this.#written)
    return (candidate) => made.get(textOf(candidate)) ?? withWritten(candidate, written)
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

type Written = ReadonlyMap<string, Tensor | BareValues>

function withWritten(candidate: Candidate, written: Written): Bound {
  let bound = bindCandidate(candidate)
  for (const [name, update] of written) bound = withValues(bound, name, update).bound
  return bound
}
