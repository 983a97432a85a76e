/** `tune`: finds the fastest point of a space on data and a device, and compares it with the default schedule. */

import { expectArgument, expectOptions, isRecord } from '../../api/argument-checks.ts'
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Kernel } from '../../api/kernel.ts'
import type { Coverage } from '../../run/compare-outputs.ts'
import { type Ceilings, ceilingsOf } from '../../runtime/ceilings.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tried } from '../evaluate/evaluator.ts'
import { Expected } from '../expected.ts'
import type { Records } from '../records/index.ts'
import { type SearchResult, search } from '../search.ts'
import type { SearchProgress } from '../search-options.ts'
import type { KernelSpace, StrategyFactory, StrategyOptions, Trial } from '../types.ts'
import { usualSpace } from '../usual-space.ts'
import { type Judged, judgedOf } from './judged.ts'
import { compareFinalists, type Finalist } from './last-comparison.ts'
import { fastestRoutines, type LibraryTrial, type LibraryTrials, libraryTrials, record } from './libraries.ts'
import { type QueueOptions, Session } from './session.ts'
import { subjectOf, type TuneSubject } from './subject.ts'
import { checkQueue, checkTuning, isSpace } from './tune-options.ts'
import { usualPrior } from './usual-prior.ts'

export type { Finalist } from './last-comparison.ts'

export interface TuneOptions {
  /** Default: the kernel's own for this device (`cpu_space`, `gpu_space`), else its sketches. */
  readonly space?: KernelSpace<Kernel> | undefined
  /** Inputs as for `prepare`: unbound ones are random if there is a seed. */
  readonly inputs: RunInputs
  readonly device: Device
  /** Points that are measured at most. */
  readonly trials?: number | undefined
  /** From the call on, to the last comparison, which takes half as long at most; half of them at least are for trials. */
  readonly seconds?: number | undefined
  /** Trials without a better one after which it ends. */
  readonly patience?: number | undefined
  /** Default: `model` with a prior, `surrogate` without: what found most in `bench/strategies`. `model` makes its prior. */
  readonly strategy?: string | StrategyFactory | undefined
  /** Of the strategy, and of the order of measurements; 1. */
  readonly seed?: number | undefined
  /** Expected milliseconds of points, without measuring. Default: the device's cost model, where there is one, for `model` alone. */
  readonly prior?: StrategyOptions['prior']
  readonly records?: Records | undefined
  /** Name of the data in the records: a file's name. */
  readonly data?: string | undefined
  /** Reuse trials of the same study from the records; true. */
  readonly resume?: boolean | undefined
  /** Ends it with the best so far. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: TuneProgress) => void) | undefined
  /** Opens the device again, once, where it is lost. */
  readonly reopen?: (() => Promise<Device>) | undefined
  /** Milliseconds that lowering a point may take; 30,000. */
  readonly timeout?: number | undefined
  /** Points that are tried together, and here measured against each other; 8, with a queue twice its workers. */
  readonly batch?: number | undefined
  /** Counts the bytes and operations of `finalists`, for reports: some seconds, unless `signal` aborts; false. */
  readonly explain?: boolean | undefined
  /** Routines of the device's libraries that compute the kernel are tried as well; true. */
  readonly libraries?: boolean | undefined
  /** Workers do the trials; the last comparison is made here. */
  readonly queue?: QueueOptions | undefined
}

export interface TuneProgress extends SearchProgress {
  /** Trials that the records had. */
  readonly knownTrials: number
  /** The fastest routine of a library, where one could be measured. */
  readonly library?: LibraryTrial | undefined
  /** Points that the cost model ranked so far, while it does. */
  readonly ranking?: number | undefined
  /** Of the last comparison: whose turn it is. */
  readonly comparing?: string | undefined
}

/** A trial, with known facts about its kernel. */
export interface TunedTrial extends Trial, Partial<Tried> {
  /** Since the search began; none of those that the records had. */
  readonly seconds?: number | undefined
  /** When it was done, in milliseconds since 1970. */
  readonly time?: number | undefined
}

export interface TuneResult extends Omit<SearchResult, 'trials' | 'best'>, Judged {
  readonly subject: TuneSubject
  /** Measured peak rates of the device; `null` if there are none. */
  readonly ceilings: Ceilings | null
  readonly libraries: LibraryTrials
  /** The default schedule. */
  readonly defaultSchedule: Finalist
  /** Final comparison: the fastest points and the alternatives outside the space, measured against each other. */
  readonly finalists: readonly Finalist[]
  readonly trials: readonly TunedTrial[]
  /** Trials that the records had. */
  readonly knownTrials: number
  /** Of the records; `null` without them. */
  readonly study: string | null
  /** True if the reference computed a sample of the results. */
  readonly sampled: boolean
  /** Share of the results that was compared; `null` if none was. */
  readonly coverage: Coverage | null
}

export const TUNE_OPTIONS = [
  'space',
  'inputs',
  'device',
  'trials',
  'seconds',
  'patience',
  'strategy',
  'seed',
  'prior',
  'records',
  'data',
  'resume',
  'signal',
  'onProgress',
  'reopen',
  'timeout',
  'batch',
  'explain',
  'libraries',
  'queue',
] as const

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
  const { prior = usualPrior(space, { ...options, kernel }) } = options
  const { strategy = prior ? 'model' : 'surrogate' } = options
  const expected = prior && Expected.of(prior)
  if (strategy === 'model') expected?.begin()
  const session = await Session.open(kernel, { ...options, space, seed, resume, expected })
  const { evaluator, known } = session
  const told = new Map<Trial, Pick<TunedTrial, 'seconds' | 'time'>>()
  let progress: TuneProgress | undefined
  try {
    const subject = subjectOf(kernel, evaluator.bench.data.inputs, device, { space, strategy, seed })
    const libraries =
      options.libraries === false ? NO_LIBRARIES : await libraryTrials(evaluator, kernel, signal)
    if (session.study) record(libraries, options.records!, session.study)
    const fastest = fastestRoutines(libraries)
    if (expected)
      expected.onRanked = (ranking) => {
        if (progress) options.onProgress?.({ ...progress, latestTrials: [], ranking })
      }
    const found = await search({
      // What measures heeds the signal, and nothing else may use the device before.
      graceSeconds: Number.POSITIVE_INFINITY,
      space,
      strategy,
      evaluate: session.evaluateBesides,
      externalTrials: session.others,
      seed,
      batch: options.batch ?? (await session.batch()),
      knownTrials: known,
      trials: options.trials,
      seconds: options.seconds && leftOf(options.seconds, start),
      patience: options.patience,
      prior: expected?.prior,
      signal,
      onProgress(p) {
        for (const t of p.latestTrials) told.set(t, { seconds: p.seconds, time: Date.now() })
        progress = { ...p, knownTrials: known.length + session.heard, library: fastest[0] }
        options.onProgress?.(progress)
      },
    })
    const comparing = (name: string): void => {
      if (progress) options.onProgress?.({ ...progress, latestTrials: [], comparing: name })
    }
    const finals = await compareFinalists(kernel, { ...options, comparing }, evaluator, space, found, fastest)
    const judged = await judgedOf(finals, evaluator, { ...options, seed, found, comparing })
    return {
      ...found,
      subject,
      ceilings: ceilingsOf(device.kind, device.name) ?? null,
      ...judged,
      libraries,
      defaultSchedule: finals.find((f) => f.name === 'standard')!,
      finalists: finals,
      trials: found.trials.map((t) => ({
        ...t,
        ...(expected && { predicted: signal?.aborted ? expected.known(t.point) : expected.of(t.point) }),
        ...session.tried(t.point),
        ...told.get(t),
      })),
      knownTrials: known.length + session.heard,
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
const leftOf = (seconds: number, start: number): number =>
  Math.max(seconds - (performance.now() - start) / 1000, seconds / 2)

function check(kernel: unknown, options: TuneOptions): void {
  expectOptions('tune', options, [...TUNE_OPTIONS])
  checkTuning(kernel, options)
  const { space, inputs, queue } = options
  const isOne = space === undefined || isSpace(space)
  expectArgument(isOne, 'space', space, 'a space of schedules: it has next and kernel')
  expectArgument(isRecord(inputs), 'inputs', inputs, '{ tensors, params, seed }')
  checkQueue(queue, 'tensors')
}
