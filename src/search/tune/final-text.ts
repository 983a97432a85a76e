/** A kernel of the last comparison as text, or why there is none. */

import { coverageText } from '../../run/compare-outputs.ts'
import { choiceText } from '../choice/text.ts'
import { fastestOf } from '../fastest.ts'
import type { StopReason } from '../search.ts'
import type { Timing } from '../types.ts'
import { areApart, type Confirmation } from './confirmation.ts'
import type { Finalist, TuneResult } from './index.ts'

const SOLE = [{ conditions: [], candidate: 0 }]

/** A schedule that is none of the program's, with the format that it takes besides, as the language writes them. */
export function finalText({ kernel, declaration }: Pick<Finalist, 'kernel' | 'declaration'>): string {
  const { text } = choiceText(kernel, SOLE, [{ kernel, call: null, requires: [] }])
  return declaration ? `${declaration}\n${text}` : text
}

const WHY: Readonly<Record<StopReason, string>> = {
  trials: 'all trials that were asked for are done',
  seconds: 'its time was over',
  patience: 'nothing better came for a while',
  exhausted: 'no point is left',
  strategy: 'the strategy asks for no more',
  aborted: 'it was interrupted',
  device: 'the device was lost',
}

/** When a search ended, and why. */
export function endText({
  seconds,
  stopReason,
  trials,
}: Pick<TuneResult, 'seconds' | 'stopReason' | 'trials'>): string {
  const isLate = trials.length === 0 && stopReason === 'seconds'
  const late = ' before the first trial: conversions, predictions and compiling took it; give it more'
  return `ended after ${seconds.toFixed(1)} s: ${WHY[stopReason]}${isLate ? late : ''}`
}

/** `0.81 (0.78 to 0.85)`. */
export function ratioText({
  ratio,
  interval: [low, high],
}: Pick<Confirmation, 'ratio' | 'interval'>): string {
  const text = (x: number): string => `${Number(x.toPrecision(3))}`
  return `${text(ratio)} (${text(low)} to ${text(high)})`
}

/** A schedule against the default, in fresh preparations of both. */
export const confirmationText = ({ name, rounds, verdict, ...c }: Confirmation): string =>
  `${name} takes ${ratioText(c)} times what standard takes, in ${rounds} fresh preparations: ${verdict}`

/** Of the last comparison, the kernels that are not distinguishable from the fastest. */
export function alikeFastest<T extends Pick<Finalist, 'outcome' | 'name'>>(
  finals: readonly T[],
  confirmation: Confirmation | null,
): ReadonlySet<T> {
  const [first, ...others] = fastestOf(finals)
  const of = (f: T | undefined): Timing | null => (f?.outcome.status === 'measured' ? f.outcome.timing : null)
  const fastest = of(first)
  const isApart = (f: T): boolean =>
    confirmation?.name === first?.name && f.name === 'standard'
      ? confirmation?.verdict === 'faster'
      : areApart(fastest!, of(f)!)
  return new Set(others.filter((f) => !isApart(f)))
}

/** Why there is no fastest. Where nothing was tried, nothing is to blame but the end. */
export function nothingText({ trials, stopReason }: Pick<TuneResult, 'trials' | 'stopReason'>): string {
  if (trials.length === 0 && stopReason === 'aborted') return 'It was ended before the first trial.'
  if (trials.length === 0 && stopReason === 'seconds')
    return 'Its time was over before the first trial: give it more.'
  return 'Nothing could be measured.'
}

/** Describes the share of results compared with the reference; empty if none was. */
export const comparedText = ({ coverage, sampled }: Pick<TuneResult, 'coverage' | 'sampled'>): string =>
  coverage ? `${sampled ? 'a sample of the results: ' : ''}${coverageText(coverage)}` : ''
