/** Recommendation of a search: the fastest of the final comparison, unless it is indistinguishable from the default. */
import type { Evaluator } from '../../evaluate/evaluator.ts'
import { fastestOf } from '../../loop/fastest.ts'
import type { SearchResult } from '../../loop/search.ts'
import type { Timing } from '../../types.ts'
import { areDisjoint, type Confirmation, confirm } from './confirmation.ts'
import type { Finalist } from './last-comparison.ts'

export type MeasuredFinal = Finalist & { readonly timing: Timing }

export interface Recommendation {
  /**
   * The fastest library routine if it is faster than all schedules, otherwise `own`; `null` if nothing could be
   * measured.
   */
  readonly best: MeasuredFinal | null
  /** The fastest schedule of `finals` if it is distinguishable from the default, otherwise the default. */
  readonly bestSchedule: MeasuredFinal | null
  /** The fastest schedule against the default; `null` if the default is the fastest, or was not measured again. */
  readonly confirmation: Confirmation | null
}

interface RecommendOptions {
  readonly seed: number
  /** Time limit of the search, in seconds. */
  readonly seconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly search: Pick<SearchResult, 'seconds'>
  /** Called with the name of the schedule that is measured again. */
  readonly onCompare: (name: string) => void
}

/** Confirmation's fraction of the search's time, and its minimum in milliseconds if the search has no time limit. */
const TIME_FRACTION = 1 / 4
const MIN_MS = 10_000

export async function recommend(
  finals: readonly Finalist[],
  evaluator: Evaluator,
  { seed, seconds, signal, search, onCompare }: RecommendOptions,
): Promise<Recommendation> {
  const fastest = fastestFinal(finals)
  const schedule = fastestFinal(finals.filter((f) => !f.routine))
  const standard = fastestFinal(finals.filter((f) => f.name === 'default'))
  const isAlternative = schedule && standard && schedule.name !== standard.name
  if (!isAlternative) return { best: fastest, bestSchedule: schedule, confirmation: null }
  let confirmation: Confirmation | null = null
  if (stepsOf(schedule) !== stepsOf(standard) && !signal?.aborted) {
    onCompare(`${schedule.name} with the default`)
    const share = 1000 * TIME_FRACTION * (seconds ?? search.seconds)
    const limitMs = seconds === undefined ? Math.max(MIN_MS, share) : share
    const kernels = [schedule.kernel, standard.kernel] as const
    confirmation = await confirm(evaluator, schedule.name, kernels, { seed, signal, limitMs })
  }
  const isFaster = confirmation
    ? confirmation.verdict === 'faster'
    : stepsOf(schedule) !== stepsOf(standard) && areDisjoint(schedule.timing, standard.timing)
  const own = isFaster ? schedule : standard
  return { best: fastest?.routine ? fastest : own, bestSchedule: own, confirmation }
}

const stepsOf = ({ kernel }: Finalist): string => JSON.stringify(kernel.toJSON())

function fastestFinal(finals: readonly Finalist[]): MeasuredFinal | null {
  const [first] = fastestOf(finals)
  return first?.outcome.status === 'measured' ? { ...first, timing: first.outcome.timing } : null
}
