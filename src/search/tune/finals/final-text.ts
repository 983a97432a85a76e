/** Texts about the final comparison: schedules as source, reasons, ratios. */

import { coverageText } from '../../../run/verify/compare-outputs.ts'
import { choiceText } from '../../choice/rules.ts'
import type { StopReason } from '../../loop/search.ts'
import { fastestOf } from '../../loop/tally.ts'
import type { Timing } from '../../types.ts'
import type { Finalist, TuneResult } from '../index.ts'
import { areDisjoint, type Confirmation } from './finals.ts'

const ALWAYS = [{ conditions: [], candidate: 0 }]

/** Source of a schedule that is not in the program, with the format that it declares, in the syntax of the language. */
export function finalText({ kernel, declaration }: Pick<Finalist, 'kernel' | 'declaration'>): string {
  const { text } = choiceText(kernel, ALWAYS, [{ kernel, call: null, requires: [] }])
  return declaration ? `${declaration}\n${text}` : text
}

const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  trials: 'all requested trials are done',
  seconds: 'the time limit was reached',
  patience: 'no improvement (patience)',
  exhausted: 'no point is left',
  strategy: 'the strategy proposed no further point',
  aborted: 'interrupted',
  device: 'the device was lost',
}

/** When a search ended, and why. */
export function endText({
  seconds,
  stopReason,
  trials,
}: Pick<TuneResult, 'seconds' | 'stopReason' | 'trials'>): string {
  const isLate = trials.length === 0 && stopReason === 'seconds'
  const hint = ' before the first trial, by conversion, prediction and compilation: raise the limit'
  return `ended after ${seconds.toFixed(1)} s: ${STOP_REASONS[stopReason]}${isLate ? hint : ''}`
}

/** A ratio with its interval: `0.81 (0.78 to 0.85)`. */
export function ratioText({
  ratio,
  interval: [low, high],
}: Pick<Confirmation, 'ratio' | 'interval'>): string {
  const text = (x: number): string => `${Number(x.toPrecision(3))}`
  return `${text(ratio)} (${text(low)} to ${text(high)})`
}

/** One line about a schedule compared with the default in fresh preparations. */
export const confirmationText = ({ name, rounds, verdict, ...c }: Confirmation): string =>
  `${name} takes ${ratioText(c)} times the time of the default, in ${rounds} fresh preparations: ${verdict}`

/** Kernels of the final comparison that are not distinguishable from the fastest. */
export function tiedWithFastest<T extends Pick<Finalist, 'outcome' | 'name'>>(
  finals: readonly T[],
  confirmation: Confirmation | null,
): ReadonlySet<T> {
  const [first, ...others] = fastestOf(finals)
  const timingOf = (f: T | undefined): Timing | null =>
    f?.outcome.status === 'measured' ? f.outcome.timing : null
  const fastest = timingOf(first)
  const isSlower = (f: T): boolean =>
    confirmation?.name === first?.name && f.name === 'default'
      ? confirmation?.verdict === 'faster'
      : areDisjoint(fastest!, timingOf(f)!)
  return new Set(others.filter((f) => !isSlower(f)))
}

/** Reason why there is no fastest schedule, given the end of the search if nothing was evaluated. */
export function noResultText({ trials, stopReason }: Pick<TuneResult, 'trials' | 'stopReason'>): string {
  if (trials.length === 0 && stopReason === 'aborted')
    return 'The search was interrupted before the first trial.'
  if (trials.length === 0 && stopReason === 'seconds')
    return 'The time limit was reached before the first trial: raise the limit.'
  return 'Nothing could be measured.'
}

/** Describes the share of results compared with the reference; empty if none was. */
export const comparisonText = ({ coverage, sampled }: Pick<TuneResult, 'coverage' | 'sampled'>): string =>
  coverage ? `${sampled ? 'a sample of the results: ' : ''}${coverageText(coverage)}` : ''
