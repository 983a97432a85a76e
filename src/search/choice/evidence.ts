/** Training data of choices: measured times of candidates on several data sets. */
import { brokenFact } from '../../analysis/integers/facts.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import type { Measure, Values } from './conditions.ts'

/** Data on which candidates were measured. */
export interface EvidenceCase {
  /** Cross-validation group: cases left out together, such as one matrix with several sizes. */
  readonly group: string
  readonly values: Values
  /** Index of the candidate of the default schedule; `null` if none runs. */
  readonly standard?: number | null | undefined
}

export interface EvidenceCandidate {
  /** Milliseconds for each case; `null` if the candidate cannot run there, or was not measured. */
  readonly times: readonly (number | null)[]
  /** Requirements of the schedule on sizes. */
  readonly requires: readonly Fact[]
  /** Groups on which it was found; `null` for candidates that are always evaluated. */
  readonly foundOn: ReadonlySet<string> | null
}

export interface Evidence {
  readonly measures: readonly Measure[]
  readonly cases: readonly EvidenceCase[]
  readonly candidates: readonly EvidenceCandidate[]
}

/** A part of the cases, with the candidates known without the others. */
export interface Part {
  readonly cases: readonly number[]
  readonly candidates: readonly number[]
}

/** Loss of candidates that cannot run: larger than any ratio of times, so that no minimal sum contains it. */
export const CANNOT_RUN = 1e6

/** For each candidate and case log(time / best of the case); `CANNOT_RUN` if it cannot run. */
export function lossesOf({ cases, candidates }: Evidence): readonly Float64Array[] {
  const best = cases.map((_, c) => Math.min(...candidates.map((k) => k.times[c] ?? Number.POSITIVE_INFINITY)))
  return candidates.map(({ times }) =>
    Float64Array.from(cases, (_, c) => {
      const time = times[c] ?? null
      return time === null ? CANNOT_RUN : Math.log(time / best[c]!)
    }),
  )
}

/** True if the sizes satisfy the requirements of a candidate. */
export const isMet = ({ requires }: EvidenceCandidate, values: Values): boolean =>
  brokenFact(requires, values) === undefined

/** The evidence without one group: neither its times nor candidates found only on it. */
export function without({ cases, candidates }: Evidence, group: string): Part {
  const isAvailable = ({ foundOn }: EvidenceCandidate): boolean =>
    foundOn === null || [...foundOn].some((g) => g !== group)
  return {
    cases: [...cases.keys()].filter((c) => cases[c]!.group !== group),
    candidates: [...candidates.keys()].filter((k) => isAvailable(candidates[k]!)),
  }
}

export const whole = ({ cases, candidates }: Evidence): Part => ({
  cases: [...cases.keys()],
  candidates: [...candidates.keys()],
})
