/** The schedule of the next run of a binding, by the fill ratios that the latest runs measured. */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type Candidate, kernelOf, textOf } from '../built/candidates.ts'
import { equalRatios, givenFacts } from './facts.ts'
import { determinesFillRatio } from './fill-ratio.ts'
import type { FillRatio, LastRun } from './last-run.ts'
import type { Selector } from './selector.ts'

/** The schedule of the next run. */
export interface NextSchedule {
  readonly candidate: Candidate
  /** The first schedule that was skipped because of an overflow; null if there is none. */
  readonly overflowed: string | null
  /** Fill ratios on which the selection is based, by name. */
  readonly fillRatios: Readonly<Record<string, FillRatio>>
}

/**
 * Skips schedules that overflowed (their fill ratios count as 1, unless no branch matches then) and, with `here`, schedules that do not
 * share their memory. If no other schedule remains, the first one is kept. Throws the SptError of an illegal selected schedule.
 */
export function nextSchedule(selector: Selector, last: LastRun, here = false): NextSchedule {
  const first = selector.select([last])
  const passed = new Set<string>()
  let overflowed: string | null = null
  const counted = new Map<string, number>()
  let candidate = first
  for (;;) {
    const text = textOf(candidate)
    const full = last.full.get(text)
    if (!full && !(here && last.elsewhere.has(text)))
      return explained(selector, last, candidate, overflowed, counted)
    passed.add(text)
    if (full) overflowed ??= text
    for (const name of full ?? []) counted.set(name, 1)
    let next = resultOrError(() => selector.select([givenFacts(counted), last], passed))
    if (next instanceof SptError) {
      counted.clear()
      next = resultOrError(() => selector.select([last], passed))
    }
    if (next instanceof SptError) {
      if (next.diagnostics[0]!.code !== 'choose/no-match') throw next
      return explained(selector, last, first)
    }
    candidate = next
  }
}

/** A schedule with its fill ratios. `selector`: null for a fixed schedule. `counted`: those that count as 1, because the schedule that measures them overflowed. */
export function explained(
  selector: Selector | null,
  { found }: LastRun,
  candidate: Candidate,
  overflowed: string | null = null,
  counted: ReadonlyMap<string, number> = new Map(),
): NextSchedule {
  const values = candidate.selection?.values ?? {}
  const fillRatios = [...(selector?.live.keys() ?? [])].flatMap((name): [string, FillRatio][] => {
    if (!(name in values)) return []
    const [value, known] = [Number(values[name]), found.get(name)]
    const other = selector!.unknown.has(name) ? 'unknown' : 'given'
    const source = known?.value === value ? known.source : counted.has(name) ? 'overflow' : other
    return [[name, { value, source, measured: null }]]
  })
  return { candidate, overflowed, fillRatios: byName(fillRatios) }
}

/**
 * Schedules that measure a fill ratio, found by repeatedly skipping the selected one: the first if the other fill ratios are 1, and the
 * first if they are 0.
 */
export function* schedulesMeasuring(selector: Selector, name: string): Generator<Candidate, void> {
  const ratio = selector.live.get(name)!
  for (const others of [1, 0]) {
    const passed = new Set<string>()
    for (;;) {
      const facts = equalRatios(selector.live, others, name)
      const candidate = resultOrError(() => selector.select([facts], passed))
      if (candidate instanceof SptError) break
      const { runtimeLists = [] } = kernelOf(candidate)
      if (runtimeLists.some((f) => determinesFillRatio(f, ratio))) {
        yield candidate
        break
      }
      passed.add(textOf(candidate))
    }
  }
}
