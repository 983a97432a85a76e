/** Plots of search results: best points, convergence, rejected trials, and predictions against measurements. */
import { expectArgument, expectOptions } from '../ast/diagnostics/expect-argument.ts'
import { colorOf } from '../pictures/picture/svg.ts'
import { rankCorrelation } from '../search/statistics/importance.ts'
import type { Point, Timing, Trial } from '../search/types.ts'
import { expectRows } from './chart/channels.ts'
import { scatter } from './chart/index.ts'
import { drawLayers, type Layer } from './chart/layers.ts'
import type { CellOutput } from './display.ts'
import type { Figure } from './figure.ts'
import { table } from './table.ts'

interface MeasuredTrial {
  readonly point: Point
  readonly timing: Timing
  readonly predicted: number | undefined
  /** Number of the trial, from 1. */
  readonly trial: number
}

const measuredTrials = (trials: readonly Trial[]): MeasuredTrial[] =>
  trials.flatMap(({ point, outcome, predicted }, k) =>
    outcome.status === 'measured' ? [{ point, timing: outcome.timing, predicted, trial: k + 1 }] : [],
  )

/** The fastest measured points, sorted by time: median milliseconds with the interval, the prediction, the decisions. */
export function best(trials: readonly Trial[], count = 10): CellOutput {
  checkTrials(trials)
  expectArgument(Number.isSafeInteger(count) && count >= 0, 'how many', count, 'a whole number')
  const sorted = measuredTrials(trials)
    .sort((a, b) => a.timing.median - b.timing.median)
    .slice(0, count)
  const hasPredictions = sorted.some((m) => m.predicted !== undefined)
  return table(
    sorted.map(({ point, timing, trial, predicted: expected }) => ({
      trial,
      ms: timing.median,
      from: timing.interval?.[0],
      to: timing.interval?.[1],
      ...(hasPredictions && { predicted: expected }),
      ...point,
    })),
    { digits: digitsOf(sorted.map((m) => m.timing.median)) },
  )
}

/** Significant digits for a column of times: its decimals follow from the median, and the smallest time gets three digits too. */
function digitsOf(times: readonly number[]): number {
  const exponents = times.filter((t) => t > 0).map((t) => Math.floor(Math.log10(t)))
  return 3 + Math.max(0, (exponents[exponents.length >> 1] ?? 0) - (exponents[0] ?? 0))
}

const isTrials = (trials: unknown): boolean =>
  Array.isArray(trials) && trials.every((t) => typeof t?.outcome?.status === 'string')

export const checkTrials = (trials: readonly Trial[]): void =>
  expectArgument(isTrials(trials), 'trials', trials, 'a list of trials: those of a search')

export type Studies = readonly StudyTrial[] | Readonly<Record<string, readonly StudyTrial[]>>
/** A trial; results of `tune` also have the seconds since the start of the search and the time in milliseconds since 1970. */
export type StudyTrial = Trial & { readonly seconds?: number | undefined; readonly time?: number | undefined }
const isList = (studies: Studies): studies is readonly StudyTrial[] => Array.isArray(studies)

export interface ConvergenceOptions {
  /** Horizontal axis: trial number, seconds of its search, or minutes since the first trial; default: `trials`. */
  readonly by?: 'trials' | 'seconds' | 'minutes' | undefined
  /** Horizontal reference lines in milliseconds, by name. */
  readonly levels?: Readonly<Record<string, number>> | undefined
  /** Width in pixels; default: 720. */
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
  const series = list.flatMap(([name, trials]) => {
    const times = timedTrials(trials, by)
    return times.length > 0 ? [[name, times] as const] : []
  })
  expectRows(series)
  const layers = series.flatMap(([name, times], k): Layer[] => [
    ...(list.length === 1 ? [trialDots(times)] : []),
    { shape: 'steps', points: bestSoFar(times), color: colorOf(k), name },
  ])
  const levelLayers = Object.entries(levels).map(([name, y], k): Layer => {
    return { shape: 'level', points: [{ x: 0, y }], color: colorOf(list.length + k), name, dashed: true }
  })
  const allLayers = [...levelLayers, ...layers]
  return drawLayers(allLayers, {
    log: allLayers.every((l) => l.points.every(isPositive)) ? 'y' : undefined,
    fromZero: true,
    title: `Best so far, by ${by}`,
    width,
    labels: { x: AXIS_LABELS[by], y: 'milliseconds' },
  })
}

/** True for points on a logarithmic axis; coarse clocks may measure a time of 0. */
const isPositive = ({ y }: { readonly y: number }): boolean => y > 0

interface TimedTrial {
  readonly x: number
  readonly y: number
}

const AXIS_LABELS = {
  trials: 'trials',
  seconds: 'seconds of the search',
  minutes: 'minutes since the first trial',
} as const
const MINUTE_MS = 60_000

function timedTrials(trials: readonly StudyTrial[], by: keyof typeof AXIS_LABELS): readonly TimedTrial[] {
  const start = trials.reduce(
    (earliest, { time = earliest }) => Math.min(earliest, time),
    Number.POSITIVE_INFINITY,
  )
  const timed = trials.flatMap(({ outcome, seconds, time }, k) => {
    const minutes = time === undefined ? undefined : (time - start) / MINUTE_MS
    const x = { trials: k + 1, seconds, minutes }[by]
    return outcome.status === 'measured' && x !== undefined ? [{ x, y: outcome.timing.median }] : []
  })
  // Trials of several searches are in no particular order.
  return by === 'minutes' ? timed.toSorted((a, b) => a.x - b.x) : timed
}

/** Maximum number of dots: more of them overlap and slow a page down. */
const MAX_DOTS = 3000

/** Every n-th item if there are more than `MAX_DOTS`. */
function thin<T>(items: readonly T[]): { readonly sampled: readonly T[]; readonly stride: number } {
  const stride = Math.ceil(items.length / MAX_DOTS)
  return { stride, sampled: stride <= 1 ? items : items.filter((_, k) => k % stride === 0) }
}

function trialDots(times: readonly TimedTrial[]): Layer {
  const { sampled, stride } = thin(times)
  const name = stride <= 1 ? 'trials' : `one in ${stride} trials`
  return { shape: 'dots', points: sampled, color: PALE, name, radius: 2.5, opacity: 1 }
}

/** The trials that improved on all earlier ones, and the last trial. */
function bestSoFar(times: readonly TimedTrial[]): readonly TimedTrial[] {
  const improvements: TimedTrial[] = []
  for (const t of times) if (t.y < (improvements.at(-1)?.y ?? Infinity)) improvements.push(t)
  return [...improvements, { x: times.at(-1)!.x, y: improvements.at(-1)!.y }]
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
 * Predicted against measured milliseconds, one point for each trial that has both, with the line of equal values.
 * @throws SptError `notebook/no-rows` if no trial has both
 */
export function predictions(
  trials: readonly Trial[],
  { width }: { readonly width?: number | undefined } = {},
): Figure {
  checkTrials(trials)
  const rows = measuredTrials(trials).flatMap(({ timing, predicted }) =>
    predicted === undefined ? [] : [{ predicted, measured: timing.median }],
  )
  const rank = rankCorrelation(
    rows.map((r) => r.predicted),
    rows.map((r) => r.measured),
  )
  return scatter(thin(rows).sampled, {
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
