/** What a choice selects from while its kernel runs. */
import { orRefused, SptError } from '../ast/diagnostic.ts'
import type { Statistic } from '../elaborate/index.ts'
import type { RuntimeLists } from '../ir/stage1.ts'
import { extentsOf } from '../run/bind/coordinate-sources.ts'
import type { Bound } from '../run/bind/index.ts'
import type { Executable } from '../run/execute.ts'
import { commandsMeasuring } from '../run/shared-buffers.ts'
import type { Command, Device } from '../runtime/device.ts'
import type { CompiledSchedule } from './compiled.ts'
import type { Selection } from './dispatch-conditions.ts'
import { liveOf } from './dispatcher.ts'
import { determinesFillRatio } from './fill-ratio.ts'
import { FillRatioTimes } from './fill-ratio-times.ts'

/** What there is to select from. */
export interface DispatchSource<V> {
  /** What the choice asks. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** Of those, what only runs tell. */
  readonly unknown: ReadonlySet<string>
  /** @param passed schedules that are passed over */
  choose(found: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): V
  /** What runs under it find. */
  found(variant: V): readonly RuntimeLists[]
  chosen(variant: V): Selection
  /** @param device another one than the choice was compiled for */
  compile(variant: V, device?: Device): Promise<CompiledSchedule>
  bind(variant: V, compiled: CompiledSchedule): Bound
}

/** What would be chosen if all shares were this one, but for that of `one`, which were 0. */
export const covering = <V>(
  of: DispatchSource<V>,
  share: number,
  one?: string,
  passed?: ReadonlySet<string>,
): V => of.choose(new Map(liveOf(of.statistics).map(([name]) => [name, name === one ? 0 : share])), passed)

/**
 * The first that tells the share, of what would be chosen one after the other if each were passed over: where the others are
 * covered, and where they are not.
 */
export function* telling<V>(of: DispatchSource<V>, name: string): Generator<V, void> {
  const statistic = of.statistics.get(name)!
  for (const others of [1, 0]) {
    const passed = new Set<string>()
    for (;;) {
      const variant = orRefused(() => covering(of, others, name, passed))
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
  /** Of the tensor. */
  readonly elements: number
}

/** A schedule of the choice, on the data. */
export interface Branch {
  readonly text: string
  readonly compiled: CompiledSchedule
  readonly executable: Executable
  /** What its runs tell. */
  readonly findings: readonly Finding[]
  /** The launches that do, and tell whether there is room, by themselves. */
  readonly commands: readonly Command[]
  readonly times: FillRatioTimes
}

/** Whether runs of the schedule tell the share. */
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
    // What nobody reads has no place.
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
