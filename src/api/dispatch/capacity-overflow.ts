/**
 * Selection with overflows: schedules whose lists exceeded their capacity (`live in place capacity E`) are skipped, and their fill ratio
 * counts as 1.
 */

import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { overflow } from '../../run/execution/overflow-error.ts'
import type { Branch, DispatchBranches, DispatchSource, SelectedVariant } from './dispatch-branch.ts'
import { finds, telling } from './dispatch-branch.ts'
import type { Selection } from './dispatch-conditions.ts'
import { type FillRatio, liveOf } from './dispatcher.ts'
import { fillRatio } from './fill-ratio.ts'

/** The overflow error of the schedule's latest measurement; undefined if its capacity suffices. */
export function overflowError({ executable }: Branch): Promise<SptError | undefined> {
  const { program, bound } = executable
  return overflow(program.plan, (counts) => executable.values(counts), bound.params)
}

/** Returns true if a run modifies `inout` tensors, and so cannot be repeated. */
export const updates = ({ executable }: Branch): boolean =>
  executable.program.plan.buffers.some((b) => b.role === 'inout')

/** The schedule selected when overflowing schedules are skipped. */
export interface SelectionWithinCapacity {
  readonly variant: SelectedVariant
  /** The first schedule that was skipped because of an overflow; null if there is none. */
  readonly overflowed: string | null
  /** Names of the fill ratios that count as 1, because the schedule that measures them overflowed. */
  readonly counted: ReadonlySet<string>
}

/**
 * Selects a schedule by these fill ratios. Skips schedules that overflowed (their fill ratios count as 1, unless no branch matches then)
 * and schedules whose memory layout differs (`isElsewhere`). If no other schedule remains, the first one is kept. Throws the SptError of
 * an illegal selected schedule.
 */
export function selectWithinCapacity(
  of: DispatchSource,
  found: ReadonlyMap<string, number>,
  fullOf: (text: string) => Branch | undefined,
  isElsewhere: (text: string) => boolean,
): SelectionWithinCapacity {
  const first = of.choose(found)
  const passed = new Set<string>()
  let overflowed: string | null = null
  let counted: ReadonlySet<string> = new Set()
  let variant = first
  for (;;) {
    const { text } = variant.selection
    const full = fullOf(text)
    if (!full && !isElsewhere(text)) return { variant, overflowed, counted }
    passed.add(text)
    if (full) overflowed ??= text
    counted = new Set([...counted, ...(full?.findings ?? []).map((f) => f.statistic)])
    const all = new Map([...found, ...[...counted].map((name) => [name, 1] as const)])
    let next = resultOrError(() => of.choose(all, passed))
    if (next instanceof SptError) {
      counted = new Set()
      next = resultOrError(() => of.choose(found, passed))
    }
    if (next instanceof SptError) {
      if (next.diagnostics[0]!.code !== 'choose/no-match') throw next
      return { variant: first, overflowed: null, counted }
    }
    variant = next
  }
}

export type KnownFillRatio = Pick<FillRatio, 'value' | 'source'>

/** Returns the fill ratios on which the selection is based, by name. */
export function fillRatiosOf(
  { statistics, unknown }: DispatchSource,
  { values }: Selection,
  found: ReadonlyMap<string, KnownFillRatio>,
  counted: ReadonlySet<string>,
): Readonly<Record<string, FillRatio>> {
  const asked = liveOf(statistics).filter(([name]) => name in values)
  return byName(
    asked.map(([name]): [string, FillRatio] => {
      const [value, known] = [Number(values[name]), found.get(name)]
      const other = unknown.has(name) ? 'unknown' : 'given'
      const source = known?.value === value ? known.source : counted.has(name) ? 'overflow' : other
      return [name, { value, source, measured: null }]
    }),
  )
}

/** Fill ratios and overflows that runs of schedules measure, or samples by the launches of a builder alone. */
export class Measurements {
  readonly #of: DispatchSource
  readonly #branches: DispatchBranches
  /** Names of the fill ratios that runs may measure. */
  readonly live: readonly string[]
  /** Latest fill ratios, by name. */
  readonly found: Map<string, KnownFillRatio>
  /** Schedules whose latest measurement exceeded their capacity. */
  readonly full = new Set<Branch>()
  /** Branches that measure a fill ratio if the current schedule does not; `null` if none can. */
  readonly #observers = new Map<string, Branch | null>()
  /** Fill ratios measured since the latest decision. */
  readonly since = new Map<string, number>()
  /** True if a measurement changed since the latest decision. */
  isNews = false
  isFreed = false

  constructor(of: DispatchSource, branches: DispatchBranches, found: ReadonlyMap<string, KnownFillRatio>) {
    this.#of = of
    this.#branches = branches
    this.live = liveOf(of.statistics).map(([name]) => name)
    this.found = new Map(found)
  }

  /** Branches to sample: those that measure fill ratios of other schedules, and those that overflowed. */
  others(now: Branch): readonly Branch[] {
    const names = this.live.filter((name) => !finds(now, name))
    const full = [...this.full].filter((b) => b !== now && b.commands.length > 0)
    return [...new Set([...names.flatMap((name) => this.#observers.get(name) ?? []), ...full])]
  }

  observe(now: Branch): Promise<void> | undefined {
    const unseen = this.live.filter((name) => !finds(now, name) && !this.#observers.has(name))
    if (unseen.length === 0) return undefined
    const all = async (): Promise<void> => {
      for (const name of unseen) this.#observers.set(name, await this.#observerOf(name))
    }
    return all()
  }

  /** Returns a branch whose launches measure a fill ratio without the rest of the kernel; null if there is none. */
  async #observerOf(name: string): Promise<Branch | null> {
    for (const variant of telling(this.#of, name)) {
      let found: Branch | null = null
      const error = await valueOrError(async () =>
        this.#branches.with(variant, (branch) => {
          if (branch.commands.length > 0) found = branch
          return undefined
        }),
      )
      if (found && !error) return found
    }
    return null
  }

  async sample(branch: Branch, from: FillRatio['source']): Promise<void> {
    await branch.executable.program.device.run(branch.commands)
    await this.read(branch, from)
  }

  async read(branch: Branch, from: FillRatio['source']): Promise<void> {
    const { executable, findings } = branch
    const { params } = executable.bound
    const isFull = (await overflowError(branch)) !== undefined
    if (isFull !== this.full.has(branch)) this.isNews = true
    isFull ? this.full.add(branch) : this.full.delete(branch)
    for (const { statistic, found, elements } of findings) {
      const counts = await Promise.all(found.parts.map((p) => executable.values(p.counts)))
      const value = fillRatio(found, counts, elements, params)
      if (this.isFreed) return
      const before = this.found.get(statistic)
      if (before?.value !== value || before.source !== from) this.isNews = true
      this.found.set(statistic, { value, source: from })
      this.since.set(statistic, value)
    }
  }
}
