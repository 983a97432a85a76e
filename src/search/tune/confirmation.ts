/** Tests whether a schedule is faster than the default: both are repeatedly prepared anew, warmed up and timed in turns. */
import type { CompiledSchedule } from '../../api/compiled.ts'
import type { Kernel } from '../../api/kernel.ts'
import { SptError } from '../../ast/diagnostic.ts'
import { unlessAborted } from '../ending.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { CONFIDENCE, medianInterval } from '../measuring/median-interval.ts'
import type { Timing } from '../types.ts'

/** A schedule against the default. Samples of one preparation are alike, so that each counts once. */
export interface Confirmation {
  /** Name of the schedule among `finalists`. */
  readonly name: string
  /** Its time over the default's: the median of the rounds. */
  readonly ratio: number
  /** Between which ratios the true median lies, at 95 %; of fewer than six rounds the least and the greatest, which is less sure. */
  readonly interval: readonly [low: number, high: number]
  /** Fresh preparations of both. */
  readonly rounds: number
  readonly verdict: 'faster' | 'slower' | 'not distinguishable'
}

/** Rounds until one that is sure ends it, and until it ends. */
const [LEAST, MOST] = [8, 16]
/** Confidence level for stopping early: high, because of repeated tests. */
const SURE = 0.99
/** Rounds that an interval at 95 % takes. */
const FEW = 6

/** @param round the ratio of times in fresh preparations of both @param isOver asked before each round */
export async function confirmedBy(
  name: string,
  round: (n: number) => Promise<number>,
  isOver: () => boolean = () => false,
): Promise<Confirmation | null> {
  const ratios: number[] = []
  const isApart = (confidence: number): boolean => {
    const { low, high } = medianInterval(ratios, confidence)
    return high < 1 || low > 1
  }
  while (ratios.length < MOST && !isOver()) {
    const ratio = await round(ratios.length)
    if (!Number.isFinite(ratio)) break
    ratios.push(ratio)
    if (ratios.length >= LEAST && isApart(SURE)) break
  }
  if (ratios.length === 0) return null
  const { median: ratio, low, high } = medianInterval(ratios, CONFIDENCE)
  const isSure = ratios.length >= FEW && isApart(CONFIDENCE)
  const verdict = !isSure ? 'not distinguishable' : high < 1 ? 'faster' : 'slower'
  return { name, ratio, interval: [low, high], rounds: ratios.length, verdict }
}

export interface ConfirmationOptions {
  readonly seed: number
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which no round begins. */
  readonly within: number
}

/**
 * Compares a schedule with the default in fresh preparations; `null` where there was no time for one round, or one of them
 * could not be run again.
 */
export async function confirmed(
  evaluator: Evaluator,
  name: string,
  [winner, standard]: readonly [Kernel, Kernel],
  { seed, signal, within }: ConfirmationOptions,
): Promise<Confirmation | null> {
  const start = performance.now()
  const isOver = (): boolean => signal?.aborted === true || performance.now() - start > within
  const round = async (n: number): Promise<number> => {
    const compiled: CompiledSchedule[] = []
    try {
      // Compiled anew as well: hosts make other code of the same text.
      for (const kernel of [winner, standard]) compiled.push(await evaluator.compiled(kernel, signal))
      const times = await evaluator.bench.fresh(
        n % 2 === 0 ? compiled : compiled.toReversed(),
        seed + n,
        signal,
      )
      const [own, other] = n % 2 === 0 ? times : times.toReversed()
      return own! / other!
    } finally {
      for (const c of compiled) c.release()
    }
  }
  try {
    return (
      (await unlessAborted(signal ?? new AbortController().signal, () => confirmedBy(name, round, isOver))) ??
      null
    )
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return null
  }
}

/** True if the intervals of two medians are disjoint; otherwise neither counts as faster. */
export const areApart = (a: Timing, b: Timing): boolean =>
  a.interval !== null &&
  b.interval !== null &&
  (a.interval[1] < b.interval[0] || b.interval[1] < a.interval[0])
