/** Recommendation of a search: the fastest of the final comparison, unless it is indistinguishable from the default. */
import type { Evaluator } from '../evaluate/evaluator.ts'
import { fastestOf } from '../fastest.ts'
import type { SearchResult } from '../search.ts'
import type { Timing } from '../types.ts'
import { areApart, type Confirmation, confirmed } from './confirmation.ts'
import type { Finalist } from './last-comparison.ts'

export type MeasuredFinal = Finalist & { readonly timing: Timing }

export interface Judged {
  /** The fastest routine of a library, if nothing is as fast, else `bestSchedule`; `null` where nothing could be measured. */
  readonly best: MeasuredFinal | null
  /** The fastest schedule of `finalists` if it is distinguishable from the default, which is kept otherwise. */
  readonly bestSchedule: MeasuredFinal | null
  /** The fastest schedule against the default; `null` if the default is the fastest, or was not measured again. */
  readonly confirmation: Confirmation | null
}

interface JudgedOptions {
  readonly seed: number
  /** Of the search. */
  readonly seconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly found: Pick<SearchResult, 'seconds'>
  /** Told what is measured again. */
  readonly comparing: (name: string) => void
}

/** Of the time of the search; and milliseconds where nothing bounds that. */
const SHARE = 1 / 4
const LEAST_MS = 10_000

export async function judgedOf(
  finals: readonly Finalist[],
  evaluator: Evaluator,
  { seed, seconds, signal, found, comparing }: JudgedOptions,
): Promise<Judged> {
  const fastest = fastestFinal(finals)
  const schedule = fastestFinal(finals.filter((f) => !f.routine))
  const standard = fastestFinal(finals.filter((f) => f.name === 'standard'))
  const isOther = schedule && standard && schedule.name !== standard.name
  if (!isOther) return { best: fastest, bestSchedule: schedule, confirmation: null }
  let confirmation: Confirmation | null = null
  if (stepsOf(schedule) !== stepsOf(standard) && !signal?.aborted) {
    comparing(`${schedule.name} with standard`)
    const bound = 1000 * SHARE * (seconds ?? found.seconds)
    const within = seconds === undefined ? Math.max(LEAST_MS, bound) : bound
    const kernels = [schedule.kernel, standard.kernel] as const
    confirmation = await confirmed(evaluator, schedule.name, kernels, { seed, signal, within })
  }
  const isFaster = confirmation
    ? confirmation.verdict === 'faster'
    : stepsOf(schedule) !== stepsOf(standard) && areApart(schedule.timing, standard.timing)
  const own = isFaster ? schedule : standard
  return { best: fastest?.routine ? fastest : own, bestSchedule: own, confirmation }
}

const stepsOf = ({ kernel }: Finalist): string => JSON.stringify(kernel.toJSON())

function fastestFinal(finals: readonly Finalist[]): MeasuredFinal | null {
  const [first] = fastestOf(finals)
  return first?.outcome.status === 'measured' ? { ...first, timing: first.outcome.timing } : null
}
