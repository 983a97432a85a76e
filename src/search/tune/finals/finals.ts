/** The final comparison: a few kernels of any formats, one at a time on the device, in several passes. */

import type { Kernel } from '../../../api/kernels/kernel.ts'
import { Random } from '../../../run/bind/sources/random-tensors.ts'
import type { Evaluator } from '../../evaluate/evaluator.ts'
import type { LibraryRoutine } from '../../evaluate/library-routines.ts'
import { Ending as Limit, unlessAborted } from '../../loop/ending.ts'
import { fastestOf } from '../../loop/tally.ts'
import { summarizeSamples } from '../../measuring/median-interval.ts'
import { outcomeOf } from '../../outcomes.ts'
import { shuffled } from '../../statistics/shuffled.ts'
import type { Outcome } from '../../types.ts'

/**
 * Passes of the final comparison. Each kernel has a turn in each pass, so that disturbances of the device affect all of them.
 */
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
  readonly signal?: AbortSignal | undefined
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
  const limit = new Limit({ signal: stop, seconds })
  const { signal } = limit
  const random = new Random(seed)
  const samples = kernels.map((): number[] => [])
  const outcomes: Outcome[] = []
  const ending = new GraceSignal(signal)
  const [fastest] = fastestOf(kernels.flatMap(({ earlier }) => (earlier ? [{ outcome: earlier }] : [])))
  const isShort =
    fastest?.outcome.status === 'measured' && RUNS_PER_KERNEL * fastest.outcome.timing.median < GRACE_MS
  const measuredOutcome = (k: number): Outcome => ({
    status: 'measured',
    timing: summarizeSamples(samples[k]!),
  })
  try {
    for (let pass = 0; pass < PASSES; pass++) {
      const remaining = [...kernels.keys()].filter((k) => !outcomes[k])
      // The first pass uses the order of the search, because there may be no time for all kernels.
      for (const k of pass === 0 ? remaining : shuffled(remaining, () => random.next())) {
        if (signal?.aborted && (pass > 0 || ending.signal.aborted || !isShort)) break
        const fastestTime = fastestTimeOf(samples, kernels)
        const rejection = rejectIfSlow(kernels[k]!, fastestTime)
        if (rejection) {
          outcomes[k] = rejection
          continue
        }
        onTurn?.(k)
        const outcome = await unlessAborted(ending.signal, () =>
          measureContender(evaluator, kernels[k]!, ending.signal),
        )
        if (outcome?.status === 'measured') samples[k]!.push(...outcome.timing.samples)
        else if (outcome) outcomes[k] = outcome
      }
      for (const k of slowKernels(samples)) outcomes[k] ??= measuredOutcome(k)
    }
  } finally {
    ending.clear()
    limit.clear()
  }
  return kernels.map((_, k) => outcomes[k] ?? (samples[k]!.length > 0 ? measuredOutcome(k) : null))
}

/**
 * Indices of kernels with at least two samples, all of which are far from the fastest median; a single sample may be
 * disturbed.
 */
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

/** A signal that aborts some time after the caller's. */
class GraceSignal {
  readonly #controller = new AbortController()
  readonly #source: AbortSignal | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(source: AbortSignal | undefined) {
    this.#source = source
    if (source?.aborted) this.#begin()
    else source?.addEventListener('abort', this.#begin, { once: true })
  }

  readonly #begin = (): void => {
    this.#timer = setTimeout(() => this.#controller.abort(this.#source!.reason), GRACE_MS)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#source?.removeEventListener('abort', this.#begin)
  }
}

/**
 * Outcome of a kernel that is verified against the reference and measured with a fraction of the full effort. @throws
 * the abort reason of `signal`
 */
export async function measureContender(
  evaluator: Evaluator,
  { kernel, routine }: Contender,
  signal?: AbortSignal,
): Promise<Outcome> {
  try {
    const compiled = await (routine ? routine.compile() : evaluator.compile(kernel, signal))
    const steps = JSON.stringify(kernel.toJSON())
    try {
      const verification = await evaluator.bench.verify(
        compiled,
        routine ? `${routine.name} ${steps}` : steps,
        signal,
      )
      if ('wrong' in verification) return verification.wrong
      try {
        const { prepared } = verification
        return (
          (await evaluator.bench.warmUp(prepared, signal)) ??
          (await evaluator.bench.measure([prepared], PASS_EFFORT, signal))[0]!
        )
      } finally {
        verification.prepared.free()
      }
    } finally {
      compiled.release()
    }
  } catch (e) {
    return outcomeOf(e)
  }
}
