/** Choices beside schedules whose lists were found to have no room (`live in place capacity E`): of those all counts as covered. */

import { byName } from '../ast/by-name.ts'
import { orRefused, SptError } from '../ast/diagnostic.ts'
import { overflow } from '../run/overflow-error.ts'
import type { Branch, DispatchSource } from './dispatch-branch.ts'
import type { Selection } from './dispatch-conditions.ts'
import { type FillRatio, liveOf } from './dispatcher.ts'

/** What is wrong where there is no room for what the schedule found last. */
export function overflowError({ executable }: Branch): Promise<SptError | undefined> {
  const { program, bound } = executable
  return overflow(program.plan, (counts) => executable.values(counts), bound.params)
}

/** Whether a run cannot be repeated: what it updates has been updated. */
export const updates = ({ executable }: Branch): boolean =>
  executable.program.plan.buffers.some((b) => b.role === 'inout')

/** What is chosen beside schedules without room. */
export interface SelectionWithinCapacity<V> {
  readonly variant: V
  /** What would be chosen if it had room. */
  readonly overflowed: string | null
  /** Shares that count as 1 since what finds them has no room. */
  readonly counted: ReadonlySet<string>
}

/**
 * What is chosen by these shares: schedules without room are passed over, and all that they find counts as covered, unless that
 * leaves nothing to choose; so are those that cannot be had. Where nothing else can be chosen at all, what has no room stays.
 * @throws SptError what is wrong with a schedule that would be chosen, as where it is chosen first
 */
export function selectWithinCapacity<V>(
  of: DispatchSource<V>,
  found: ReadonlyMap<string, number>,
  fullOf: (text: string) => Branch | undefined,
  isElsewhere: (text: string) => boolean,
): SelectionWithinCapacity<V> {
  const first = of.choose(found)
  const passed = new Set<string>()
  let overflowed: string | null = null
  let counted: ReadonlySet<string> = new Set()
  let variant = first
  for (;;) {
    const { text } = of.chosen(variant)
    const full = fullOf(text)
    if (!full && !isElsewhere(text)) return { variant, overflowed, counted }
    passed.add(text)
    if (full) overflowed ??= text
    counted = new Set([...counted, ...(full?.findings ?? []).map((f) => f.statistic)])
    const all = new Map([...found, ...[...counted].map((name) => [name, 1] as const)])
    let next = orRefused(() => of.choose(all, passed))
    if (next instanceof SptError) {
      counted = new Set()
      next = orRefused(() => of.choose(found, passed))
    }
    if (next instanceof SptError) {
      if (next.diagnostics[0]!.code !== 'choose/no-match') throw next
      return { variant: first, overflowed: null, counted }
    }
    variant = next
  }
}

export type KnownFillRatio = Pick<FillRatio, 'value' | 'source'>

/** By which shares a schedule was chosen. */
export function fillRatiosOf<V>(
  { statistics, unknown }: DispatchSource<V>,
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
