/** Branches between which a dispatch selects at run time. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Statistic } from '../../elaborate/index.ts'
import type { RuntimeLists } from '../../ir/coordinates/stage1.ts'
import type { Bound } from '../../run/bind/index.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import type { Executable } from '../../run/execution/execute.ts'
import { commandsMeasuring } from '../../run/execution/shared-buffers.ts'
import type { Command, Device } from '../../runtime/device.ts'
import type { CompiledSchedule } from '../compiled/compiled.ts'
import type { Selection } from './dispatch-conditions.ts'
import { liveOf } from './dispatcher.ts'
import { determinesFillRatio } from './fill-ratio.ts'
import { FillRatioTimes } from './fill-ratio-times.ts'

/** The dispatch from which schedules are selected. */
export interface DispatchSource<V> {
  /** Statistics in the conditions of the dispatch, by name. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** Names of the statistics that only runs can measure. */
  readonly unknown: ReadonlySet<string>
  /** Selects a schedule by measured fill ratios. `passed`: schedules to skip. */
  choose(found: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): V
  /** Lists that runs under the schedule build. */
  found(variant: V): readonly RuntimeLists[]
  chosen(variant: V): Selection
  /** Compiles a schedule. `device`: another device than that of the dispatch. */
  compile(variant: V, device?: Device): Promise<CompiledSchedule>
  bind(variant: V, compiled: CompiledSchedule): Bound
}

/** The schedule selected if all fill ratios were `share`, except that of `one`, which is 0. */
export const covering = <V>(
  of: DispatchSource<V>,
  share: number,
  one?: string,
  passed?: ReadonlySet<string>,
): V => of.choose(new Map(liveOf(of.statistics).map(([name]) => [name, name === one ? 0 : share])), passed)

/**
 * Schedules that measure a fill ratio, found by repeatedly skipping the selected one: the first if the other fill ratios are 1, and the
 * first if they are 0.
 */
export function* telling<V>(of: DispatchSource<V>, name: string): Generator<V, void> {
  const statistic = of.statistics.get(name)!
  for (const others of [1, 0]) {
    const passed = new Set<string>()
    for (;;) {
      const variant = resultOrError(() => covering(of, others, name, passed))
      if (variant instanceof SptError) break
      if (
        statistic.kind === 'fill_ratio' &&
        of.found(variant).some((f) => determinesFillRatio(f, statistic))
      ) {
        yield variant
        break
      }
      passed.add(of.chosen(variant).text)
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

/** Returns true if runs of the schedule measure the fill ratio. */
export const finds = ({ findings }: Branch, statistic: string): boolean =>
  findings.some((f) => f.statistic === statistic)

export function branchOf(
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
  const room = (plan.capacities ?? []).map((c) => c.counts)
  const commands = commandsMeasuring(executable, [...counts, ...room])
  return { text, compiled, executable, findings, commands, times: new FillRatioTimes() }
}
