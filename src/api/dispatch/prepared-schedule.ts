/** A schedule with its data on a device. Schedules of one kernel on the same data share memory. */
import { capacityCounts, type RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import { memoize } from '../../ir/memoize.ts'
import { valueIn } from '../../plan/interpret.ts'
import type { Bound } from '../../run/bind/index.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { SharedMemory } from '../../run/execution/external-memory.ts'
import { commandsMeasuring } from '../../run/execution/launch-commands.ts'
import { overflow } from '../../run/execution/overflow-error.ts'
import type { Command } from '../../runtime/device.ts'
import type { CompiledCode } from '../built/code.ts'
import type { Branching, FillRatioStatistic } from './dispatch-conditions.ts'
import { determinesFillRatio, fillRatio } from './fill-ratio.ts'

/** Fill ratios of formats built at run time in conditions of a dispatch, by name. */
export type LiveRatios = ReadonlyMap<string, FillRatioStatistic>

export const liveRatios = ({ statistics }: Branching): LiveRatios =>
  new Map(
    [...statistics].flatMap(([name, s]) => (s.kind === 'fill_ratio' && s.live ? [[name, s] as const] : [])),
  )

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
    const { branches, buffers, runtimeLists = [] } = compiled.program.plan
    const { source } = compiled
    const { params } = executable.bound
    // Counts that no statement reads have no buffer.
    const isMeasured = (f: RuntimeLists): boolean =>
      f.parts.every((p) => buffers.some((b) => b.name === p.counts))
    const extents = extentsOf(source, params)
    const ofPlan = branches?.fillRatios?.flatMap(({ text: statistic, format, elements }): Finding[] => {
      const found = runtimeLists[format]
      return found && isMeasured(found) ? [{ statistic, found, elements: valueIn(elements, params)! }] : []
    })
    const open = ofPlan ? [] : [...(selector?.live ?? [])]
    const ofSelector = open.flatMap(([statistic, c]): Finding[] => {
      const found = runtimeLists.find((f) => determinesFillRatio(f, c) && isMeasured(f))
      const { axes } = source.buffers.find((b) => b.name === c.tensor)!
      return found ? [{ statistic, found, elements: axes.reduce((n, a) => n * extents.get(a)!, 1) }] : []
    })
    this.findings = ofPlan ?? ofSelector
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

  /** The launches that measure fill ratios and overflows, and nothing else. Empty if they cannot run alone. */
  get commands(): readonly Command[] {
    return this.#commands(this.executable.bound.params)
  }

  /** True if a run modifies `inout` tensors, and so cannot be repeated. */
  get updates(): boolean {
    return this.#plan.buffers.some((b) => b.role === 'inout')
  }

  /** Runs the launches that measure, and reads the fill ratios, by name. */
  async sample(): Promise<ReadonlyMap<string, number>> {
    await this.executable.program.device.run(this.commands)
    return this.read()
  }

  /** Reads the fill ratios that the latest run or sample measured, by name. */
  async read(): Promise<ReadonlyMap<string, number>> {
    const { executable, findings } = this
    const ratios = new Map<string, number>()
    for (const { statistic, found, elements } of findings) {
      const counts = await Promise.all(found.parts.map((p) => executable.values(p.counts)))
      ratios.set(statistic, fillRatio(found, counts, elements, executable.bound.params))
    }
    return ratios
  }

  /** The overflow error of the latest measurement; undefined if the capacity suffices. */
  overflow() {
    const { executable } = this
    return overflow(this.#plan, (counts) => executable.values(counts), executable.bound.params)
  }

  /** True if lists have capacities. */
  get isLimited(): boolean {
    return capacityCounts(this.#plan).length > 0
  }

  get #plan() {
    return this.executable.program.plan
  }
}
