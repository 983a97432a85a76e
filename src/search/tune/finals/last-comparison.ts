/** Final comparison of a search: its fastest points, and alternatives outside the space. */
import type { Kernel } from '../../../api/kernels/kernel.ts'
import type { Explanation } from '../../../run/explain/index.ts'
import type { Evaluator } from '../../evaluate/evaluator.ts'
import type { LibraryRoutine } from '../../evaluate/library-routines.ts'
import type { SearchResult } from '../../loop/search.ts'
import { fastestOf, finalists } from '../../loop/tally.ts'
import { outcomeOf } from '../../outcomes.ts'
import type { KernelSpace, Outcome, Point, Timing } from '../../types.ts'
import { alternatives, type LibraryTrial, withExplicitSteps } from '../alternatives.ts'
import type { TuneOptions } from '../tune-options.ts'
import { areDisjoint, type Confirmation, compareKernels, confirm } from './finals.ts'

/** A kernel measured in the final comparison; with `explain`, its bytes and operations. */
export interface Finalist extends KernelExplanation {
  /** `point 1`, `point 2`, … for points of the space, the fastest first; also `default`, `unscheduled`, `A dense`. */
  readonly name: string
  /** Name and arguments of the default schedule. */
  readonly schedule?: string | null | undefined
  /** Declaration of a format that the steps use and the program lacks. */
  readonly declaration?: string | undefined
  /** Point of the space; `null` for alternatives outside the space. */
  readonly point: Point | null
  /** `build` runs it as it was measured. */
  readonly kernel: Kernel
  /** The library routine that was measured instead of the kernel's schedule. */
  readonly routine?: LibraryRoutine | undefined
  readonly outcome: Outcome
}

interface FinalsOptions
  extends Pick<TuneOptions, 'inputs' | 'device' | 'seed' | 'seconds' | 'signal' | 'explain'> {
  /** Called with the name of the kernel to be measured next. */
  readonly onCompare: (name: string) => void
}

/** Outcome of candidates not yet compared when the comparison ended. */
const NOT_COMPARED: Outcome = {
  status: 'failed',
  code: 'search/ended',
  message: 'the search ended before this candidate was measured',
}

/** Measures the fastest points and the alternatives against each other, as long as the device works. */
export async function compareFinalists(
  kernel: Kernel,
  options: FinalsOptions,
  evaluator: Evaluator,
  space: KernelSpace<Kernel>,
  result: SearchResult,
  routines: readonly LibraryTrial[],
): Promise<readonly Finalist[]> {
  const fastest = finalists(result)
  const sources = [
    ...fastest.map(({ point, outcome }, k) => ({
      name: rankName(k),
      point,
      earlier: outcome,
      kernel: () => space.kernel(point),
    })),
    ...(await alternatives(kernel, options.device, evaluator.bench.data.inputs, options.inputs)),
    ...routines.map(({ name, routine, outcome }) => ({
      name,
      routine,
      earlier: outcome,
      kernel: () => routine.kernel,
    })),
  ]
  const candidates = sources.map((c) => {
    try {
      return { ...c, kernel: 'routine' in c ? c.kernel() : withExplicitSteps(c.kernel()), rejection: null }
    } catch (e) {
      return { ...c, kernel, rejection: outcomeOf(e) }
    }
  })
  const accepted = candidates.filter((c) => c.rejection === null)
  const outcomes = await compareKernels(evaluator, accepted, {
    seed: options.seed ?? 1,
    signal: options.signal,
    seconds: options.seconds && Math.max(MIN_SECONDS, options.seconds / 2),
    onTurn: (k) => options.onCompare(accepted[k]!.name),
  })
  const finals: Finalist[] = []
  for (const { rejection, ...candidate } of candidates) {
    const { earlier, expansion: _, ...c } = { earlier: NOT_COMPARED, expansion: 1, ...candidate }
    const outcome = rejection ?? outcomes[accepted.findIndex((l) => l.name === c.name)] ?? earlier
    const isCounted =
      options.explain && !options.signal?.aborted && outcome.status === 'measured' && !('routine' in c)
    const explanation = isCounted ? await explainKernel(evaluator, c.kernel) : {}
    finals.push({ point: null, ...c, outcome, ...explanation })
  }
  return nameByRank(finals)
}

/** Minimum seconds of the final comparison. */
const MIN_SECONDS = 2

const rankName = (k: number): string => `point ${k + 1}`

/** Names points by their rank in the final comparison. */
function nameByRank(finals: readonly Finalist[]): readonly Finalist[] {
  const points = finals.filter((f) => f.point !== null)
  const fastest = fastestOf(points)
  const ranked = [...fastest, ...points.filter((f) => !fastest.includes(f))]
  const renamed = ranked.map((f, k) => ({ ...f, name: rankName(k) }))
  return [...renamed, ...finals.filter((f) => f.point === null)]
}

// Recommendation: the fastest of the final comparison, unless it is indistinguishable from the default.

export type MeasuredFinal = Finalist & { readonly timing: Timing }

export interface Recommendation {
  /** The fastest routine if it is faster than all schedules, otherwise `bestSchedule`; `null` without a measurement. */
  readonly best: MeasuredFinal | null
  /** The fastest schedule of `finals` if it is distinguishable from the default, otherwise the default. */
  readonly bestSchedule: MeasuredFinal | null
  /** The fastest schedule against the default; `null` if the default is the fastest, or was not measured again. */
  readonly confirmation: Confirmation | null
}

interface RecommendOptions extends Pick<FinalsOptions, 'seconds' | 'signal' | 'onCompare'> {
  readonly seed: number
  readonly search: Pick<SearchResult, 'seconds'>
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

// Bytes and operations of a kernel that was compared at the end.

export { allOperations } from '../../../run/explain/roofline.ts'

export interface KernelExplanation {
  /** Bytes and operations, without times. */
  readonly explanation?: Explanation | undefined
  /** Reason why they are unknown. */
  readonly unexplained?: Outcome | undefined
}

async function explainKernel(evaluator: Evaluator, kernel: Kernel): Promise<KernelExplanation> {
  try {
    using compiled = await evaluator.compile(kernel)
    using prepared = await evaluator.bench.data.bind(compiled)
    return { explanation: await prepared.explain({ time: false }) }
  } catch (e) {
    return { unexplained: outcomeOf(e) }
  }
}
