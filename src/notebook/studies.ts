/** Plots of search results: best points, convergence, rejected trials, and predictions against measurements. */
import { expectArgument, expectOptions } from '../ast/expect-argument.ts'
import { colorOf } from '../pictures/picture/svg.ts'
import { rankCorrelation } from '../search/rank-correlation.ts'
import type { Point, Timing, Trial } from '../search/types.ts'
import { expectRows } from './chart/channels.ts'
import { scatter } from './chart/index.ts'
import { type Layer, layered } from './chart/layers.ts'
import type { CellOutput } from './display.ts'
import type { Figure } from './figure.ts'
import { table } from './table.ts'

interface Measured {
  readonly point: Point
  readonly timing: Timing
  readonly predicted: number | undefined
  /** Number of the trial, from 1. */
  readonly trial: number
}

const measured = (trials: readonly Trial[]): Measured[] =>
  trials.flatMap(({ point, outcome, predicted }, k) =>
    outcome.status === 'measured' ? [{ point, timing: outcome.timing, predicted, trial: k + 1 }] : [],
  )

/** The fastest measured points, first the best: median milliseconds with the interval, the prediction, their decisions. */
export function best(trials: readonly Trial[], count = 10): CellOutput {
  checkTrials(trials)
  expectArgument(Number.isSafeInteger(count) && count >= 0, 'how many', count, 'a whole number')
  const sorted = measured(trials)
    .sort((a, b) => a.timing.median - b.timing.median)
    .slice(0, count)
  const predicted = sorted.some((m) => m.predicted !== undefined)
  return table(
    sorted.map(({ point, timing, trial, predicted: expected }) => ({
      trial,
      ms: timing.median,
      from: timing.interval?.[0],
      to: timing.interval?.[1],
      ...(predicted ? { predicted: expected } : {}),
      ...point,
    })),
    { digits: digitsOf(sorted.map((m) => m.timing.median)) },
  )
}

/** Number of digits of times: columns have the decimals of their median, and the fastest needs three digits too. */
function digitsOf(times: readonly number[]): number {
  const sizes = times.filter((t) => t > 0).map((t) => Math.floor(Math.log10(t)))
  return 3 + Math.max(0, (sizes[sizes.length >> 1] ?? 0) - (sizes[0] ?? 0))
}

const isTrials = (trials: unknown): boolean =>
  Array.isArray(trials) && trials.every((t) => typeof t?.outcome?.status === 'string')

export const checkTrials = (trials: readonly Trial[]): void =>
  expectArgument(isTrials(trials), 'trials', trials, 'a list of trials: those of a search')

type Studies = readonly StudyTrial[] | Readonly<Record<string, readonly StudyTrial[]>>
/** A trial; of results of `tune`, with the seconds after which it was done, and when, since 1970. */
type StudyTrial = Trial & { readonly seconds?: number | undefined; readonly time?: number | undefined }
const isList = (studies: Studies): studies is readonly StudyTrial[] => Array.isArray(studies)

export interface ConvergenceOptions {
  /** Along the axis: the number of the trial, the seconds of its search, or the minutes since the first of all; `trials`. */
  readonly by?: 'trials' | 'seconds' | 'minutes' | undefined
  /** Milliseconds that a line across shows, by name. */
  readonly levels?: Readonly<Record<string, number>> | undefined
  /** Pixels; 720. */
  readonly width?: number | undefined
}

export const PALE = '#b9c4d0'

/**
 * Best time so far after each trial, including rejected ones. A single study shows all times as dots; several studies of one
 * space are distinguished by name. Over seconds or minutes, trials without a time stamp are left out.
 * @throws SptError `notebook/no-rows` if no trial was measured
 */
export function convergence(studies: Studies, options: ConvergenceOptions = {}): Figure {
  expectOptions('convergence', options, ['by', 'levels', 'width'])
  const { by = 'trials', levels = {}, width } = options
  const list = isList(studies) ? [['best so far', studies] as const] : Object.entries(studies)
  const all = list.flatMap(([name, trials]) => {
    const times = timesOf(trials, by)
    return times.length > 0 ? [[name, times] as const] : []
  })
  expectRows(all)
  const layers = all.flatMap(([name, times], k): Layer[] => [
    ...(list.length === 1 ? [trialsOf(times)] : []),
    { shape: 'steps', points: bestOf(times), color: colorOf(k), name },
  ])
  const lines = Object.entries(levels).map(([name, y], k): Layer => {
    return { shape: 'level', points: [{ x: 0, y }], color: colorOf(list.length + k), name, dashed: true }
  })
  const drawn = [...lines, ...layers]
  return layered(drawn, {
    log: drawn.every((l) => l.points.every(isPositive)) ? 'y' : undefined,
    fromZero: true,
    title: `Best so far, by ${by}`,
    width,
    labels: { x: ALONG[by], y: 'milliseconds' },
  })
}

/** Clocks are coarse, and a logarithmic axis has no 0. */
const isPositive = ({ y }: { readonly y: number }): boolean => y > 0

interface Time {
  readonly x: number
  readonly y: number
}

const ALONG = {
  trials: 'trials',
  seconds: 'seconds of the search',
  minutes: 'minutes since the first trial',
} as const
const MINUTE_MS = 60_000

function timesOf(trials: readonly StudyTrial[], by: keyof typeof ALONG): readonly Time[] {
  const start = trials.reduce((least, { time = least }) => Math.min(least, time), Number.POSITIVE_INFINITY)
  const all = trials.flatMap(({ outcome, seconds, time }, k) => {
    const since = time === undefined ? undefined : (time - start) / MINUTE_MS
    const x = { trials: k + 1, seconds, minutes: since }[by]
    return outcome.status === 'measured' && x !== undefined ? [{ x, y: outcome.timing.median }] : []
  })
  // Trials of several searches come in any order.
  return by === 'minutes' ? all.toSorted((a, b) => a.x - b.x) : all
}

/** More dots hide each other, and make a page slow. */
const MOST_DOTS = 3000

/** Every n-th item if there are too many. */
function thinned<T>(all: readonly T[]): { readonly shown: readonly T[]; readonly every: number } {
  const every = Math.ceil(all.length / MOST_DOTS)
  return { every, shown: every <= 1 ? all : all.filter((_, k) => k % every === 0) }
}

function trialsOf(times: readonly Time[]): Layer {
  const { shown, every } = thinned(times)
  const name = every <= 1 ? 'trials' : `one in ${every} trials`
  return { shape: 'dots', points: shown, color: PALE, name, radius: 2.5, opacity: 1 }
}

/** The trials that improved on all earlier ones, and the last trial. */
function bestOf(times: readonly Time[]): readonly Time[] {
  const out: Time[] = []
  for (const t of times) if (t.y < (out.at(-1)?.y ?? Infinity)) out.push(t)
  return [...out, { x: times.at(-1)!.x, y: out.at(-1)!.y }]
}

/** Counts trials by outcome: measured, rejected, failed or wrong, grouped by code, with one of the messages each. */
export function outcomes(trials: readonly Trial[]): CellOutput {
  checkTrials(trials)
  const groups = new Map<string, { outcome: string; code: string; trials: number; example: string }>()
  for (const { outcome } of trials) {
    const code = 'code' in outcome ? outcome.code : ''
    const key = `${outcome.status} ${code}`
    const group = groups.get(key) ?? {
      outcome: outcome.status,
      code,
      trials: 0,
      example: 'message' in outcome ? outcome.message.split('\n')[0]! : '',
    }
    groups.set(key, { ...group, trials: group.trials + 1 })
  }
  return table([...groups.values()].sort((a, b) => b.trials - a.trials))
}

/**
 * Predicted against measured milliseconds, a point for each trial that has both; on the line they are equal.
 * @throws SptError `notebook/no-rows` if there is none
 */
export function predictions(
  trials: readonly Trial[],
  { width }: { readonly width?: number | undefined } = {},
): Figure {
  checkTrials(trials)
  const rows = measured(trials).flatMap(({ timing, predicted }) =>
    predicted === undefined ? [] : [{ predicted, measured: timing.median }],
  )
  const rank = rankCorrelation(
    rows.map((r) => r.predicted),
    rows.map((r) => r.measured),
  )
  return scatter(thinned(rows).shown, {
    x: 'predicted',
    y: 'measured',
    log: rows.every((r) => r.predicted > 0 && r.measured > 0) ? 'xy' : undefined,
    diagonal: true,
    title: `Predicted and measured: rank correlation ${rank.toFixed(2)} (Spearman, ${rows.length} points)`,
    labels: { x: 'predicted milliseconds', y: 'measured milliseconds' },
    height: 420,
    width,
  })
}
