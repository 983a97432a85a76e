/** The last comparison: few kernels of any formats, one at a time on the device, in several passes. */

import type { Kernel } from '../../api/kernel.ts'
import { Random } from '../../run/bind/random-tensors.ts'
import { Ending as Limit, unlessAborted } from '../ending.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { outcomeOf } from '../evaluate/outcomes.ts'
import { fastestOf } from '../fastest.ts'
import type { LibraryRoutine } from '../libraries/index.ts'
import { summarizeSamples } from '../measuring/median-interval.ts'
import { shuffled } from '../shuffled.ts'
import type { Outcome } from '../types.ts'

/**
 * Passes of the final comparison. Each kernel has a turn in each pass, so that disturbances of the device affect all of them.
 */
const PASSES = 4
/** Of the usual effort, in each pass. */
const SHARE = 0.25
/** Slowdown relative to the fastest in a pass above which a kernel is dropped. */
const FAR = 1.5

/** A kernel under its steps, or a library's routine that takes its arrays. */
export interface Contender {
  readonly kernel: Kernel
  readonly routine?: LibraryRoutine | undefined
  /** Earlier outcome, if it was tried. */
  readonly before?: Outcome | undefined
  /** Elements that it goes through for each that is stored, where they are more. */
  readonly filled?: number | undefined
}

export interface ComparisonOptions {
  /** Of the order in a pass. */
  readonly seed: number
  /** Once it aborts there are some seconds left. */
  readonly signal?: AbortSignal | undefined
  /** As if it aborted then. */
  readonly seconds?: number | undefined
  /** Told the place of the one whose turn it is. */
  readonly onTurn?: ((place: number) => void) | undefined
}

/**
 * Outcomes of kernels, in their order. Rejected, faulting and predictably slow kernels are dropped. `null`: the comparison
 * ended before the kernel had an outcome.
 */
export async function compared(
  evaluator: Evaluator,
  kernels: readonly Contender[],
  { seed, signal: stop, seconds, onTurn }: ComparisonOptions,
): Promise<readonly (Outcome | null)[]> {
  const limit = new Limit({ signal: stop, seconds })
  const { signal } = limit
  const random = new Random(seed)
  const samples = kernels.map((): number[] => [])
  const out: Outcome[] = []
  const ending = new Ending(signal)
  const [fastest] = fastestOf(kernels.flatMap(({ before }) => (before ? [{ outcome: before }] : [])))
  const isShort = fastest?.outcome.status === 'measured' && RUNS * fastest.outcome.timing.median < GRACE
  const measured = (k: number): Outcome => ({ status: 'measured', timing: summarizeSamples(samples[k]!) })
  try {
    for (let pass = 0; pass < PASSES; pass++) {
      const left = [...kernels.keys()].filter((k) => !out[k])
      // What the search holds for the fastest comes first: there may be no time for all.
      for (const k of pass === 0 ? left : shuffled(left, () => random.next())) {
        if (signal?.aborted && (pass > 0 || ending.signal.aborted || !isShort)) break
        const least = leastOf(samples, kernels)
        const far = farExpected(kernels[k]!, least)
        if (far) {
          out[k] = far
          continue
        }
        onTurn?.(k)
        const outcome = await unlessAborted(ending.signal, () => timed(evaluator, kernels[k]!, ending.signal))
        if (outcome?.status === 'measured') samples[k]!.push(...outcome.timing.samples)
        else if (outcome) out[k] = outcome
      }
      for (const k of farIn(samples)) out[k] ??= measured(k)
    }
  } finally {
    ending.clear()
    limit.clear()
  }
  return kernels.map((_, k) => out[k] ?? (samples[k]!.length > 0 ? measured(k) : null))
}

/** Those of whose samples, two at least, none is near the fastest median: a single one may be held up by anything. */
export function farIn(samples: readonly (readonly number[])[]): readonly number[] {
  const medians = samples.map((s) => (s.length > 0 ? summarizeSamples(s).median : Number.POSITIVE_INFINITY))
  const fastest = Math.min(...medians)
  return [...samples.keys()].filter(
    (k) => samples[k]!.length >= 2 && medians[k]! > FAR * fastest && Math.min(...samples[k]!) > FAR * fastest,
  )
}

/** Milliseconds of the fastest so far; `Infinity`: none was measured. */
const leastOf = (samples: readonly (readonly number[])[], kernels: readonly Contender[]): number =>
  Math.min(
    ...samples.flatMap((s) => (s.length > 0 ? [summarizeSamples(s).median] : [])),
    ...kernels.flatMap(({ before: b }) => (b?.status === 'measured' ? [b.timing.median] : [])),
  )

/** Predicted slowdown relative to the fastest above which a kernel is not run. */
const HOPELESS = 20
/** Milliseconds that one run of any may take: it cannot be interrupted on all devices. */
const SHORT_RUN = 100

/**
 * Reason to skip a kernel: its traversed elements, at the fastest kernel's time per stored element (`least` milliseconds in
 * all), take too long for a thread; `null`: it is measured.
 */
export function farExpected({ filled = 1 }: Pick<Contender, 'filled'>, least: number): Outcome | null {
  const expected = filled * least
  if (!Number.isFinite(expected) || filled <= HOPELESS || expected <= SHORT_RUN) return null
  const times = filled.toPrecision(2)
  return {
    status: 'rejected',
    code: 'search/far-slower',
    message: `it goes through ${Number(times)} times the elements that are stored: some ${Number((expected / 1000).toPrecision(2))} s are expected of a run`,
  }
}

/** Milliseconds after the signal. */
const GRACE = 1500
/** Of a kernel that is compared and measured a little. */
const RUNS = 20

/** A signal that aborts some time after the caller's. */
class Ending {
  readonly #controller = new AbortController()
  readonly #of: AbortSignal | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(of: AbortSignal | undefined) {
    this.#of = of
    if (of?.aborted) this.#begin()
    else of?.addEventListener('abort', this.#begin, { once: true })
  }

  readonly #begin = (): void => {
    this.#timer = setTimeout(() => this.#controller.abort(this.#of!.reason), GRACE)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#of?.removeEventListener('abort', this.#begin)
  }
}

/** Verified against the reference, and measured with a share of the full effort. @throws the abort reason of `signal` */
export async function timed(
  evaluator: Evaluator,
  { kernel, routine }: Contender,
  signal?: AbortSignal,
): Promise<Outcome> {
  try {
    const compiled = await (routine ? routine.compile() : evaluator.compiled(kernel, signal))
    const steps = JSON.stringify(kernel.toJSON())
    try {
      const checked = await evaluator.bench.checked(
        compiled,
        routine ? `${routine.name} ${steps}` : steps,
        signal,
      )
      if ('wrong' in checked) return checked.wrong
      try {
        const { prepared } = checked
        return (
          (await evaluator.bench.hopeless(prepared, signal)) ??
          (await evaluator.bench.measured([prepared], SHARE, signal))[0]!
        )
      } finally {
        checked.prepared.free()
      }
    } finally {
      compiled.release()
    }
  } catch (e) {
    return outcomeOf(e)
  }
}
