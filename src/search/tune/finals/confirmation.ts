/** Tests whether a schedule is faster than the default: both are repeatedly prepared anew, warmed up and timed in turns. */
import type { CompiledSchedule } from '../../../api/compiled/compiled.ts'
import type { Kernel } from '../../../api/kernels/kernel.ts'
import { SptError } from '../../../ast/diagnostics/diagnostic.ts'
import type { Evaluator } from '../../evaluate/evaluator.ts'
import { unlessAborted } from '../../loop/ending.ts'
import { CONFIDENCE, medianInterval } from '../../measuring/median-interval.ts'
import type { Timing } from '../../types.ts'

/**
 * Comparison of a schedule with the default. Samples of one preparation are correlated, so each preparation counts
 * once.
 */
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

/**
 * Runs rounds until the verdict is clear. @param round - Ratio of times in fresh preparations of both @param isOver -
 * Evaluated before each round
 */
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
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which no round begins. */
  readonly limitMs: number
}

/**
 * Compares a schedule with the default in fresh preparations; `null` if there was no time for one round, or a schedule
 * could not be run again.
 */
export async function confirm(
  evaluator: Evaluator,
  name: string,
  [winner, standard]: readonly [Kernel, Kernel],
  { seed, signal, limitMs }: ConfirmationOptions,
): Promise<Confirmation | null> {
  const start = performance.now()
  const isOver = (): boolean => signal?.aborted === true || performance.now() - start > limitMs
  const round = async (n: number): Promise<number> => {
    const compiled: CompiledSchedule[] = []
    try {
      // Compiled anew as well, because hosts generate different code for the same source.
      for (const kernel of [winner, standard]) compiled.push(await evaluator.compile(kernel, signal))
      const times = await evaluator.bench.measureFresh(
        n % 2 === 0 ? compiled : compiled.toReversed(),
        seed + n,
        signal,
      )
      const [winnerTime, standardTime] = n % 2 === 0 ? times : times.toReversed()
      return winnerTime! / standardTime!
    } finally {
      for (const c of compiled) c.release()
    }
  }
  try {
    return (
      (await unlessAborted(signal ?? new AbortController().signal, () =>
        confirmByRounds(name, round, isOver),
      )) ?? null
    )
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
