/** `tune`: finds the fastest point of a space on data and a device, and compares it with the default schedule. */

import { expectArgument, expectOptions, isRecord } from '../../api/inputs/argument-checks.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { type Ceilings, ceilingsOf } from '../../run/explain/roofline.ts'
import type { Coverage } from '../../run/verify/compare-outputs.ts'
import type { Device } from '../../runtime/device.ts'
import { type SearchResult, search } from '../loop/search.ts'
import type { SearchOptions, SearchProgress } from '../loop/search-options.ts'
import { defaultPrior } from '../ranking/cost-model.ts'
import { Expected } from '../ranking/expected.ts'
import type { Records } from '../records/index.ts'
import { usualSpace } from '../spaces/sketches.ts'
import type { KernelSpace, StrategyFactory, Trial } from '../types.ts'
import type { LibraryTrial, LibraryTrials } from './alternatives.ts'
import { fastestRoutines, libraryTrials, recordTrials } from './alternatives.ts'
import { compareFinalists, type Finalist, type Recommendation, recommend } from './finals/last-comparison.ts'
import type { QueueOptions } from './remote-evaluator.ts'
import { type PointFacts, Session } from './session.ts'
import type { TuneSubject } from './tune-options.ts'
import { COMMON_OPTIONS, checkQueue, checkTuning, isSpace, subjectOf } from './tune-options.ts'

export type { Finalist } from './finals/last-comparison.ts'

export interface TuneOptions extends Pick<SearchOptions, 'trials' | 'patience' | 'prior' | 'signal'> {
  /** Default: the kernel's own space for this device (`cpu_space`, `gpu_space`), otherwise its sketches. */
  readonly space?: KernelSpace<Kernel> | undefined
  /** Inputs as for `prepare`: unbound ones are random if there is a seed. */
  readonly inputs: RunInputs
  readonly device: Device
  /** Seconds from the call to the final comparison, which takes at most half as long; at least half are for trials. */
  readonly seconds?: number | undefined
  /**
   * Default: `model` if there is a prior, otherwise `surrogate`, the best strategies in `bench/strategies`. `model`
   * uses the device's cost model, unless `prior` replaces it.
   */
  readonly strategy?: string | StrategyFactory | undefined
  /** Seed of the strategy and of the order of measurements; default 1. */
  readonly seed?: number | undefined
  readonly records?: Records | undefined
  /** Name of the data in the records, such as a file name. */
  readonly data?: string | undefined
  /** Reuse trials of the same study from the records; default true. */
  readonly resume?: boolean | undefined
  readonly onProgress?: ((progress: TuneProgress) => void) | undefined
  /** Opens the device again, once, if it is lost. */
  readonly reopen?: (() => Promise<Device>) | undefined
  /** Milliseconds that lowering a point may take; default 30,000. */
  readonly timeout?: number | undefined
  /**
   * Number of points evaluated together, and measured against each other; default 8, with a queue twice the number of
   * workers.
   */
  readonly batch?: number | undefined
  /**
   * Counts the bytes and operations of `finals` for reports, which takes seconds, unless `signal` aborts; default
   * false.
   */
  readonly explain?: boolean | undefined
  /** Evaluates library routines of the device that compute the kernel; default true. */
  readonly libraries?: boolean | undefined
  /** Evaluates trials on workers; the final comparison runs in this process. */
  readonly queue?: QueueOptions | undefined
}

export interface TuneProgress extends SearchProgress {
  /** Number of trials that the records contained. */
  readonly knownTrials: number
  /** The fastest library routine, if one was measured. */
  readonly library?: LibraryTrial | undefined
  /** Number of points that the cost model has ranked, while it ranks. */
  readonly ranking?: number | undefined
  /** Name of the kernel that the final comparison measures. */
  readonly comparing?: string | undefined
}

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
  const session = await Session.open(kernel, { ...options, space, seed, resume, expected })
  const { evaluator, known } = session
  const times = new Map<Trial, Pick<TunedTrial, 'seconds' | 'time'>>()
  let progress: TuneProgress | undefined
  try {
    const subject = subjectOf(kernel, evaluator.bench.data.inputs, device, { space, strategy, seed })
    const libraries =
      options.libraries === false ? NO_LIBRARIES : await libraryTrials(evaluator, kernel, signal)
    if (session.study) recordTrials(libraries, options.records!, session.study)
    const fastest = fastestRoutines(libraries)
    if (expected)
      expected.onRanked = (ranking) => {
        if (progress) options.onProgress?.({ ...progress, latestTrials: [], ranking })
      }
    const result = await search({
      // Measurements observe the signal, and no other work may use the device before they end.
      graceSeconds: Number.POSITIVE_INFINITY,
      space,
      strategy,
      evaluate: session.evaluateShared,
      externalTrials: session.takeOthers,
      seed,
      batch: options.batch ?? (await session.batch()),
      knownTrials: known,
      trials: options.trials,
      seconds: options.seconds && remainingSeconds(options.seconds, start),
      patience: options.patience,
      prior: expected?.prior,
      signal,
      onProgress(p) {
        for (const t of p.latestTrials) times.set(t, { seconds: p.seconds, time: Date.now() })
        progress = { ...p, knownTrials: known.length + session.otherCount, library: fastest[0] }
        options.onProgress?.(progress)
      },
    })
    const onCompare = (name: string): void => {
      if (progress) options.onProgress?.({ ...progress, latestTrials: [], comparing: name })
    }
    const finals = await compareFinalists(
      kernel,
      { ...options, onCompare },
      evaluator,
      space,
      result,
      fastest,
    )
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
      knownTrials: known.length + session.otherCount,
      study: session.study,
      sampled: evaluator.bench.isSampled,
      coverage: evaluator.bench.coverage,
    }
  } finally {
    if (expected) expected.onRanked = undefined
    await session.close()
  }
}

/** Seconds left for trials. Preparation counts, but at least half of the seconds remain. */
const remainingSeconds = (seconds: number, start: number): number =>
  Math.max(seconds - (performance.now() - start) / 1000, seconds / 2)

function check(kernel: unknown, options: TuneOptions): void {
  expectOptions('tune', options, [...COMMON_OPTIONS, 'inputs', 'data', 'explain', 'libraries'])
  checkTuning(kernel, options)
  const { space, inputs, queue } = options
  const isOne = space === undefined || isSpace(space)
  expectArgument(isOne, 'space', space, 'a space of schedules: it has next and kernel')
  expectArgument(isRecord(inputs), 'inputs', inputs, '{ tensors, params, seed }')
  checkQueue(queue, 'tensors')
}
