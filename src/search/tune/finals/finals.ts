/** The final comparison: a few kernels of any formats, one at a time on the device, in several passes. */

import type { Kernel } from '../../../api/kernels/kernel.ts'
import { SptError } from '../../../ast/diagnostics/diagnostic.ts'
import type { AbortSignalLike } from '../../../ast/work.ts'
import { Random } from '../../../run/bind/sources/random-tensors.ts'
import type { Evaluator } from '../../evaluate/evaluator.ts'
import type { LibraryRoutine } from '../../evaluate/library-routines.ts'
import { Ending, unlessAborted } from '../../loop/ending.ts'
import { fastestOf } from '../../loop/tally.ts'
import { CONFIDENCE, medianInterval, summarizeSamples } from '../../measuring/median-interval.ts'
import { outcomeOf } from '../../outcomes.ts'
import { shuffled } from '../../statistics/shuffled.ts'
import type { Outcome, Timing } from '../../types.ts'

/** Passes of the final comparison: each kernel has a turn in each, so that disturbances affect all. */
const PASSES = 4
/** Fraction of the usual effort in each pass. */
const PASS_EFFORT = 0.25
/** Slowdown relative to the fastest in a pass above which a kernel is dropped. */
const DROP_FACTOR = 1.5

/** A kernel with its schedule, or a library routine that takes its arrays. */
export interface Contender {
  readonly kernel: Kernel
  readonly routine?: LibraryRoutine | undefined
  /** Earlier outcome, if it was tried. */
  readonly earlier?: Outcome | undefined
  /** Ratio of traversed to stored elements, if greater than 1. */
  readonly expansion?: number | undefined
}

export interface ComparisonOptions {
  /** Seed of the order in a pass. */
  readonly seed: number
  /** Ends the comparison `GRACE_MS` after the abort. */
  readonly signal?: AbortSignalLike | undefined
  /** Seconds after which it ends as if the signal aborted. */
  readonly seconds?: number | undefined
  /** Called with the index of the kernel to be measured next. */
  readonly onTurn?: ((place: number) => void) | undefined
}

/**
 * Outcomes of kernels, in their order. Rejected, faulting and predictably slow kernels are dropped. `null`: the comparison
 * ended before the kernel had an outcome.
 */
export async function compareKernels(
  evaluator: Evaluator,
  kernels: readonly Contender[],
  { seed, signal: stop, seconds, onTurn }: ComparisonOptions,
): Promise<readonly (Outcome | null)[]> {
  using ending = new Ending({ signal: stop, seconds, graceSeconds: GRACE_MS / 1000 })
  const { signal, late } = ending
  const random = new Random(seed)
  const samples = kernels.map((): number[] => [])
  const outcomes: Outcome[] = []
  const [fastest] = fastestOf(kernels.flatMap(({ earlier }) => (earlier ? [{ outcome: earlier }] : [])))
  const isShort =
    fastest?.outcome.status === 'measured' && RUNS_PER_KERNEL * fastest.outcome.timing.median < GRACE_MS
  const measuredOutcome = (k: number): Outcome => ({
    status: 'measured',
    timing: summarizeSamples(samples[k]!),
  })
  for (let pass = 0; pass < PASSES; pass++) {
    const remaining = [...kernels.keys()].filter((k) => !outcomes[k])
    // The first pass uses the order of the search, because there may be no time for all kernels.
    for (const k of pass === 0 ? remaining : shuffled(remaining, () => random.next())) {
      if (signal.aborted && (pass > 0 || late.aborted || !isShort)) break
      const fastestTime = fastestTimeOf(samples, kernels)
      const rejection = rejectIfSlow(kernels[k]!, fastestTime)
      if (rejection) {
        outcomes[k] = rejection
        continue
      }
      onTurn?.(k)
      const outcome = await unlessAborted(late, () => measureContender(evaluator, kernels[k]!, late))
      if (outcome?.status === 'measured') samples[k]!.push(...outcome.timing.samples)
      else if (outcome) outcomes[k] = outcome
    }
    for (const k of slowKernels(samples)) outcomes[k] ??= measuredOutcome(k)
  }
  return kernels.map((_, k) => outcomes[k] ?? (samples[k]!.length > 0 ? measuredOutcome(k) : null))
}

/** Indices of kernels with at least two samples, all of which are far from the fastest median. */
export function slowKernels(samples: readonly (readonly number[])[]): readonly number[] {
  const medians = samples.map((s) => (s.length > 0 ? summarizeSamples(s).median : Number.POSITIVE_INFINITY))
  const fastest = Math.min(...medians)
  return [...samples.keys()].filter(
    (k) =>
      samples[k]!.length >= 2 &&
      medians[k]! > DROP_FACTOR * fastest &&
      Math.min(...samples[k]!) > DROP_FACTOR * fastest,
  )
}

/** Median milliseconds of the fastest kernel so far; `Infinity` if none was measured. */
const fastestTimeOf = (samples: readonly (readonly number[])[], kernels: readonly Contender[]): number =>
  Math.min(
    ...samples.flatMap((s) => (s.length > 0 ? [summarizeSamples(s).median] : [])),
    ...kernels.flatMap(({ earlier: b }) => (b?.status === 'measured' ? [b.timing.median] : [])),
  )

/** Ratio of traversed to stored elements above which a kernel may be skipped. */
const MAX_EXPANSION = 20
/** Milliseconds that one run of any kernel may take, because not all devices can interrupt it. */
const SHORT_RUN = 100

/**
 * Outcome that skips a kernel, if its traversed elements take too long at the fastest kernel's time per stored element;
 * otherwise `null`.
 * @param fastestTime - Milliseconds of the fastest kernel
 */
export function rejectIfSlow(
  { expansion = 1 }: Pick<Contender, 'expansion'>,
  fastestTime: number,
): Outcome | null {
  const milliseconds = expansion * fastestTime
  if (!Number.isFinite(milliseconds) || expansion <= MAX_EXPANSION || milliseconds <= SHORT_RUN) return null
  const factor = expansion.toPrecision(2)
  return {
    status: 'rejected',
    code: 'search/far-slower',
    message: `it goes through ${Number(factor)} times the elements that are stored: some ${Number((milliseconds / 1000).toPrecision(2))} s are expected of a run`,
  }
}

/** Milliseconds between the abort of the caller's signal and the end of the comparison. */
const GRACE_MS = 1500
/** Approximate number of runs of a kernel that is verified and briefly measured. */
const RUNS_PER_KERNEL = 20

/** Outcome of a kernel that is verified, and measured with less effort. @throws the abort reason of `signal` */
export async function measureContender(
  evaluator: Evaluator,
  { kernel, routine }: Contender,
  signal?: AbortSignalLike,
): Promise<Outcome> {
  try {
    using compiled = await (routine ? routine.compile() : evaluator.compile(kernel, signal))
    const steps = JSON.stringify(kernel.toJSON())
    const { bench } = evaluator
    const verification = await bench.verify(compiled, routine ? `${routine.name} ${steps}` : steps, signal)
    if ('wrong' in verification) return verification.wrong
    using prepared = verification.prepared
    return (
      (await bench.warmUp(prepared, signal)) ?? (await bench.measure([prepared], PASS_EFFORT, signal))[0]!
    )
  } catch (e) {
    return outcomeOf(e)
  }
}

// Tests whether a schedule is faster than the default: both are repeatedly prepared anew, warmed up and timed in turns.

/** Comparison with the default. Samples of one preparation are correlated, so each counts once. */
export interface Confirmation {
  /** Name of the schedule among `finalists`. */
  readonly name: string
  /** Its time divided by the default's: median over the rounds. */
  readonly ratio: number
  /** 95 % confidence interval of the ratio; with fewer than six rounds the minimum and maximum, at lower confidence. */
  readonly interval: readonly [low: number, high: number]
  /** Number of rounds, each with fresh preparations of both schedules. */
  readonly rounds: number
  readonly verdict: 'faster' | 'slower' | 'not distinguishable'
}

/** Minimum number of rounds before an early stop, and maximum number. */
const [MIN_ROUNDS, MAX_ROUNDS] = [8, 16]
/** Confidence level for stopping early: high, because of repeated tests. */
const STOP_CONFIDENCE = 0.99
/** Minimum number of rounds for an interval at 95 %. */
const MIN_DECISIVE = 6

/** Runs rounds until the verdict is clear. @param round - Ratio of times in fresh preparations of both */
export async function confirmByRounds(
  name: string,
  round: (n: number) => Promise<number>,
  isOver: () => boolean = () => false,
): Promise<Confirmation | null> {
  const ratios: number[] = []
  const excludesOne = (confidence: number): boolean => {
    const { low, high } = medianInterval(ratios, confidence)
    return high < 1 || low > 1
  }
  while (ratios.length < MAX_ROUNDS && !isOver()) {
    const ratio = await round(ratios.length)
    if (!Number.isFinite(ratio)) break
    ratios.push(ratio)
    if (ratios.length >= MIN_ROUNDS && excludesOne(STOP_CONFIDENCE)) break
  }
  if (ratios.length === 0) return null
  const { median: ratio, low, high } = medianInterval(ratios, CONFIDENCE)
  const isSure = ratios.length >= MIN_DECISIVE && excludesOne(CONFIDENCE)
  const verdict = !isSure ? 'not distinguishable' : high < 1 ? 'faster' : 'slower'
  return { name, ratio, interval: [low, high], rounds: ratios.length, verdict }
}

export interface ConfirmationOptions {
  readonly seed: number
  readonly signal?: AbortSignalLike | undefined
  /** Milliseconds after which no round begins. */
  readonly limitMs: number
}

/** Compares a schedule with the default in fresh preparations; `null` if not even one round succeeded. */
export async function confirm(
  evaluator: Evaluator,
  name: string,
  [winner, standard]: readonly [Kernel, Kernel],
  { seed, signal, limitMs }: ConfirmationOptions,
): Promise<Confirmation | null> {
  const start = performance.now()
  const isOver = (): boolean => signal?.aborted === true || performance.now() - start > limitMs
  const round = async (n: number): Promise<number> => {
    // Compiled anew as well, because hosts generate different code for the same source.
    using first = await evaluator.compile(winner, signal)
    using second = await evaluator.compile(standard, signal)
    const compiled = [first, second]
    const times = await evaluator.bench.measureFresh(
      n % 2 === 0 ? compiled : compiled.toReversed(),
      seed + n,
      signal,
    )
    const [winnerTime, standardTime] = n % 2 === 0 ? times : times.toReversed()
    return winnerTime! / standardTime!
  }
  try {
    return (await unlessAborted(signal, () => confirmByRounds(name, round, isOver))) ?? null
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return null
  }
}

/** True if the intervals of two medians are disjoint; otherwise neither counts as faster. */
export const areDisjoint = (a: Timing, b: Timing): boolean =>
  a.interval !== null &&
  b.interval !== null &&
  (a.interval[1] < b.interval[0] || b.interval[1] < a.interval[0])
