/** How good choices are: the best time of a case over the time of what was chosen, over cases. */
import { rankCorrelation } from '../../src/search/statistics/importance.ts'
import { geometricMean } from '../gpu/statistics.ts'

export interface Choice {
  /** Case, and what was chosen of it. */
  readonly name: string
  /** The best time over that of what was chosen. */
  readonly share: number
}

export interface Summary {
  readonly cases: number
  /** Geometric mean. */
  readonly mean: number
  readonly worst: number
  readonly worstOf: string
}

export function summaryOf(choices: readonly Choice[]): Summary | null {
  if (choices.length === 0) return null
  const worst = choices.reduce((a, b) => (b.share < a.share ? b : a))
  const mean = geometricMean(choices.map((c) => c.share))
  return { cases: choices.length, mean, worst: worst.share, worstOf: worst.name }
}

/** What is known of a candidate in one case: its time, and what it was expected to take. */
export interface Guess {
  readonly candidate: string
  readonly time: number
  readonly expected: number
}

/** What is expected to be the fastest. */
export const pickOf = (guesses: readonly Guess[]): Guess =>
  guesses.reduce((a, b) => (b.expected < a.expected ? b : a))

/** Spearman's correlation of what is expected with what was measured. */
export const correlationOf = (guesses: readonly Guess[]): number =>
  rankCorrelation(
    guesses.map((g) => g.expected),
    guesses.map((g) => g.time),
  )
