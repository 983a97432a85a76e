/** A schedule with its data on a device. Schedules of one kernel on the same data share memory. */
import { capacityCounts, type RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Bound } from '../../run/bind/index.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { SharedMemory } from '../../run/execution/external-memory.ts'
import { commandsMeasuring } from '../../run/execution/launch-commands.ts'
import { overflow } from '../../run/execution/overflow-error.ts'
import type { Command } from '../../runtime/device.ts'
import type { CompiledCode } from '../built/code.ts'
import type { FillRatioStatistic } from './dispatch-conditions.ts'
import { determinesFillRatio, fillRatio } from './fill-ratio.ts'
import type { FillRatio, LastRun } from './last-run.ts'

/** Fill ratios of formats built at run time in conditions of a dispatch, by name. */
export type LiveRatios = ReadonlyMap<string, FillRatioStatistic>

interface Finding {
  readonly statistic: string
  readonly found: RuntimeLists
  /** Number of elements of the dense tensor. */
  readonly elements: number
}

export class PreparedSchedule {
  /** Call of the schedule in the dispatch. */
  readonly text: string
  readonly compiled: CompiledCode
  readonly executable: Executable
  /** Fill ratios that its runs measure. */
  readonly findings: readonly Finding[]
  readonly times = new FillRatioTimes()
  /** By the sizes and scalars of the bound data. */
  readonly #commands = memoize((_params: Bound['params']) => {
    const counts = this.findings.flatMap((f) => f.found.parts.map((p) => p.counts))
    const choice = this.#plan.branches ? [this.#plan.branches.choice] : []
    return commandsMeasuring(this.executable, [...counts, ...capacityCounts(this.#plan), ...choice])
  })

  constructor(
    selector: { readonly live: LiveRatios } | null,
    text: string,
    compiled: CompiledCode,
    executable: Executable,
  ) {
    this.text = text
    this.compiled = compiled
    this.executable = executable
    const { plan } = compiled.program
    const { source } = compiled
    const extents = extentsOf(source, executable.bound.params)
    this.findings = [...(selector?.live ?? [])].flatMap(([statistic, c]): Finding[] => {
      // Counts that no statement reads have no buffer.
      const isThere = (counts: string): boolean => plan.buffers.some((b) => b.name === counts)
      const found = plan.runtimeLists?.find(
        (f) => determinesFillRatio(f, c) && f.parts.every((p) => isThere(p.counts)),
      )
      const { axes } = source.buffers.find((b) => b.name === c.tensor)!
      return found ? [{ statistic, found, elements: axes.reduce((n, a) => n * extents.get(a)!, 1) }] : []
    })
  }

  /** `shared`: memory of another schedule. */
  static async create(
    selector: { readonly live: LiveRatios } | null,
    text: string,
    compiled: CompiledCode,
    bound: Bound,
    shared?: SharedMemory['buffers'],
  ): Promise<PreparedSchedule> {
    const { program, source } = compiled
    const origin = shared && { shared: { buffers: shared, isOwn: true, release: () => {} } }
    const executable = await Executable.create(program, bound, { source, ...origin })
    return new PreparedSchedule(selector, text, compiled, executable)
  }

  measures(statistic: string): boolean {
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

  /** Runs the launches that measure, and reads their results. */
  async sample(into: LastRun, from: FillRatio['source']): Promise<void> {
    await this.executable.program.device.run(this.commands)
    await this.read(into, from)
  }

  /** Reads the measurements of the latest run. */
  async read(into: LastRun, from: FillRatio['source']): Promise<void> {
    const { executable, findings, text } = this
    const isExceeded = (await this.overflow()) !== undefined
    into.capacity(
      text,
      findings.map((f) => f.statistic),
      isExceeded,
    )
    for (const { statistic, found, elements } of findings) {
      const counts = await Promise.all(found.parts.map((p) => executable.values(p.counts)))
      const value = fillRatio(found, counts, elements, executable.bound.params)
      if (into.isFreed) return
      into.fillRatio(statistic, value, from)
    }
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
