/**
 * Selection with overflows: schedules whose lists exceeded their capacity (`live in place capacity E`) are skipped, and their fill ratio
 * counts as 1.
 */

import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { overflow } from '../../run/execution/overflow-error.ts'
import type { Branch, DispatchSource, SelectedVariant } from './dispatch-branch.ts'
import type { Selection } from './dispatch-conditions.ts'
import { type FillRatio, liveOf } from './dispatcher.ts'

export function overflowError({ executable }: Branch): Promise<SptError | undefined> {
  const { program, bound } = executable
  return overflow(program.plan, (counts) => executable.values(counts), bound.params)
}

/** Returns true if a run modifies `inout` tensors, and so cannot be repeated. */
export const updates = ({ executable }: Branch): boolean =>
  executable.program.plan.buffers.some((b) => b.role === 'inout')

export interface SelectionWithinCapacity {
  readonly variant: SelectedVariant
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
