/** `tune`: finds the fastest point of a space on data and a device, and compares it with the default schedule. */

import { expectArgument, isRecord } from '../../api/inputs/argument-checks.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { FLAG, TEXT } from '../../ast/diagnostics/value-kinds.ts'
import { type Ceilings, ceilingsOf } from '../../run/explain/roofline.ts'
import type { Coverage } from '../../run/verify/compare-outputs.ts'
import { atEnd } from '../../runtime/dispose.ts'
import type { SearchResult } from '../loop/search.ts'
import { defaultPrior } from '../ranking/cost-model.ts'
import { Expected } from '../ranking/expected.ts'
import { usualSpace } from '../spaces/sketches.ts'
import type { Trial } from '../types.ts'
import type { LibraryTrials } from './alternatives.ts'
import { fastestRoutines, libraryTrials, recordTrials } from './alternatives.ts'
import { compareFinalists, type Finalist, type Recommendation, recommend } from './finals/last-comparison.ts'
import { type PointFacts, Session } from './session.ts'
import type { TuneOptions, TuneProgress, TuneSubject } from './tune-options.ts'
import { ANY, checkQueue, checkTuning, SPACE, subjectOf } from './tune-options.ts'

export type { Finalist } from './finals/last-comparison.ts'
export type { TuneOptions, TuneProgress } from './tune-options.ts'

/** A trial, with known facts about its kernel. */
export interface TunedTrial extends Trial, Partial<PointFacts> {
  /** Seconds since the search began; absent for trials from the records. */
  readonly seconds?: number | undefined
  /** Time of the trial's end, in milliseconds since 1970. */
  readonly time?: number | undefined
}

export interface TuneResult extends Omit<SearchResult, 'trials' | 'best'>, Recommendation {
  readonly subject: TuneSubject
  /** Measured peak rates of the device; `null` if there are none. */
  readonly ceilings: Ceilings | null
  readonly libraries: LibraryTrials
  /** The default schedule. */
  readonly defaultSchedule: Finalist
  /** Final comparison: the fastest points and the alternatives outside the space, measured against each other. */
  readonly finalists: readonly Finalist[]
  readonly trials: readonly TunedTrial[]
  /** Number of trials that the records contained. */
  readonly knownTrials: number
  /** Id of the study in the records; `null` without records. */
  readonly study: string | null
  /** True if the reference computed a sample of the results. */
  readonly sampled: boolean
  /** Share of the results that was compared; `null` if no result was compared. */
  readonly coverage: Coverage | null
}

const NO_LIBRARIES: LibraryTrials = { trials: [], absent: [] }
/**
 * Searches a space for the fastest schedule of a kernel (without steps) on these inputs and this device. Every candidate is
 * compared with the reference before it is measured.
 * ```ts
 * const { best, defaultSchedule } = await tune(kernel, { space, inputs, device, trials: 64 })
 * console.log(best?.kernel.trace, best?.timing.median)
 * ```
 * @throws SptError `search/…` of options and spaces, `choose/…`; of inputs as `bindInputs`; `studies/…` of a queue
 */
export async function tune(kernel: Kernel, options: TuneOptions): Promise<TuneResult> {
  check(kernel, options)
  const start = performance.now()
  const { device, signal, seed = 1, resume = true } = options
  const { space = await usualSpace(kernel, device, options.inputs) } = options
  const { prior = defaultPrior(space, { ...options, kernel }) } = options
  const { strategy = prior ? 'model' : 'surrogate' } = options
  const expected = prior && Expected.of(prior)
  if (strategy === 'model') expected?.begin()
  using session = await Session.open(kernel, { ...options, space, seed, resume, expected })
  const { evaluator } = session
  const times = new Map<Trial, Pick<TunedTrial, 'seconds' | 'time'>>()
  let progress: TuneProgress | undefined
  using _ = atEnd(() => {
    if (expected) expected.onRanked = undefined
  })
  const subject = subjectOf(kernel, evaluator.bench.data.inputs, device, { space, strategy, seed })
  const libraries =
    options.libraries === false ? NO_LIBRARIES : await libraryTrials(evaluator, kernel, signal)
  if (session.study) recordTrials(libraries, options.records!, session.study)
  const fastest = fastestRoutines(libraries)
  if (expected)
    expected.onRanked = (ranking) => {
      if (progress) options.onProgress?.({ ...progress, latestTrials: [], ranking })
    }
  const seconds = options.seconds && remainingSeconds(options.seconds, start)
  const result = await session.search({
    ...options,
    seconds,
    strategy,
    prior: expected?.prior,
    // Measurements observe the signal, and no other work may use the device before they end.
    graceSeconds: Number.POSITIVE_INFINITY,
    onProgress(p) {
      for (const t of p.latestTrials) times.set(t, { seconds: p.seconds, time: Date.now() })
      progress = { ...p, library: fastest[0] }
      options.onProgress?.(progress)
    },
  })
  const onCompare = (name: string): void => {
    if (progress) options.onProgress?.({ ...progress, latestTrials: [], comparing: name })
  }
  const finals = await compareFinalists(kernel, { ...options, onCompare }, evaluator, space, result, fastest)
  const recommendation = await recommend(finals, evaluator, { ...options, seed, search: result, onCompare })
  return {
    ...result,
    subject,
    ceilings: ceilingsOf(device.kind, device.name) ?? null,
    ...recommendation,
    libraries,
    defaultSchedule: finals.find((f) => f.name === 'default')!,
    finalists: finals,
    trials: result.trials.map((t) => ({
      ...t,
      ...(expected && { predicted: signal?.aborted ? expected.known(t.point) : expected.of(t.point) }),
      ...session.factsOf(t.point),
      ...times.get(t),
    })),
    knownTrials: session.knownCount,
    study: session.study,
    sampled: evaluator.bench.isSampled,
    coverage: evaluator.bench.coverage,
  }
}

/** Seconds left for trials. Preparation counts, but at least half of the seconds remain. */
const remainingSeconds = (seconds: number, start: number): number =>
  Math.max(seconds - (performance.now() - start) / 1000, seconds / 2)

function check(kernel: unknown, options: TuneOptions): void {
  checkTuning('tune', kernel, options, {
    space: SPACE,
    inputs: ANY,
    data: TEXT,
    explain: FLAG,
    libraries: FLAG,
  })
  const { inputs, queue } = options
  expectArgument(isRecord(inputs), 'inputs', inputs, '{ tensors, params, seed }')
  checkQueue(queue, 'tensors')
}
