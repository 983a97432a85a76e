/** Plots of trials by two of time, memory and error, and the importance of decisions for their times. */
import { expectArgument, expectOptions } from '../ast/diagnostics/expect-argument.ts'
import { colorOf } from '../pictures/picture/svg.ts'
import { decisionImportance } from '../search/statistics/importance.ts'
import type { Trial } from '../search/types.ts'
import { expectRows } from './chart/channels.ts'
import { bars } from './chart/index.ts'
import { drawLayers } from './chart/layers.ts'
import type { Figure } from './figure.ts'
import { checkTrials, PALE } from './studies.ts'

/** A trial of `tune` or of the records. */
export type WeighedTrial = Trial & {
  readonly bytes?: number | undefined
  readonly relativeError?: number | undefined
}

type Measure = (trial: WeighedTrial) => number | undefined
const MEASURES = {
  ms: (t) => (t.outcome.status === 'measured' ? t.outcome.timing.median : undefined),
  bytes: (t) => t.bytes,
  relativeError: (t) => t.relativeError,
} as const satisfies Readonly<Record<ParetoMeasure, Measure>>
const LABELS = { ms: 'milliseconds', bytes: 'bytes on the device', relativeError: 'relative error' } as const

export type ParetoMeasure = 'ms' | 'bytes' | 'relativeError'
export type MeasurePair = readonly [ParetoMeasure, ParetoMeasure]

export interface ParetoOptions {
  /** The two quantities to minimise, horizontal then vertical; default: `['ms', 'bytes']`. */
  readonly by?: MeasurePair | undefined
  /** Width in pixels; default: 720. */
  readonly width?: number | undefined
}

interface MeasuredPoint<T> {
  readonly trial: T
  readonly x: number
  readonly y: number
}

function measuredPoints<T extends WeighedTrial>(
  trials: readonly T[],
  [horizontal, vertical]: MeasurePair,
): readonly MeasuredPoint<T>[] {
  return trials.flatMap((trial) => {
    const [x, y] = [MEASURES[horizontal](trial), MEASURES[vertical](trial)]
    return trial.outcome.status !== 'measured' || x === undefined || y === undefined ? [] : [{ trial, x, y }]
  })
}

/** The points that no other point dominates: none is smaller in one measure and not greater in the other. */
function frontOf<T>(points: readonly MeasuredPoint<T>[]): readonly MeasuredPoint<T>[] {
  const front: MeasuredPoint<T>[] = []
  for (const w of points.toSorted((a, b) => a.x - b.x || a.y - b.y))
    if (w.y < (front.at(-1)?.y ?? Number.POSITIVE_INFINITY)) front.push(w)
  return front
}

/** @throws SptError `api/argument` */
function checkMeasures(trials: readonly WeighedTrial[], by: MeasurePair): void {
  checkTrials(trials)
  const isPair = Array.isArray(by) && by.length === 2 && by.every((b) => Object.hasOwn(MEASURES, b))
  expectArgument(isPair, 'by', by, `two of ${Object.keys(MEASURES).join(', ')}`)
}

/**
 * The Pareto front: measured trials that no other trial dominates in both measures, sorted by the first of `by`.
 * @throws SptError `api/argument`
 */
export function paretoFront<T extends WeighedTrial>(
  trials: readonly T[],
  by: MeasurePair = ['ms', 'bytes'],
): readonly T[] {
  checkMeasures(trials, by)
  return frontOf(measuredPoints(trials, by)).map((w) => w.trial)
}

/**
 * A scatter plot of the measured trials by two measures, with their Pareto front.
 * @throws SptError `notebook/no-rows` if no trial has both
 */
export function pareto(trials: readonly WeighedTrial[], options: ParetoOptions = {}): Figure {
  expectOptions('pareto', options, ['by', 'width'])
  const { by = ['ms', 'bytes'], width } = options
  checkMeasures(trials, by)
  const points = measuredPoints(trials, by)
  expectRows(points)
  const front = frontOf(points)
  const log = `${points.every((w) => w.x > 0) ? 'x' : ''}${points.every((w) => w.y > 0) ? 'y' : ''}`
  const [x, y] = by.map((b) => LABELS[b]) as [string, string]
  return drawLayers(
    [
      { shape: 'dots', points, color: PALE, name: 'trials', radius: 2.5, opacity: 1 },
      { shape: 'steps', points: front, color: colorOf(0), name: 'Pareto front' },
      { shape: 'dots', points: front, color: colorOf(0) },
    ],
    {
      log: log === '' ? undefined : (log as 'xy'),
      title: `Trials by ${x} and ${y}`,
      labels: { x, y },
      width,
    },
  )
}

/**
 * Permutation importance of each decision: a random forest predicts log times, and the importance is the growth of its error
 * when the values of the decision are exchanged between trials, normalised to a sum of 1.
 * @throws SptError `notebook/no-rows` if no trial was measured
 */
export function importance(
  trials: readonly Trial[],
  { width }: { readonly width?: number | undefined } = {},
): Figure {
  checkTrials(trials)
  const rows = decisionImportance(trials).map((r) => ({ ...r }))
  const labels = { x: 'share of the differences in time' }
  return bars(rows, { x: 'share', y: 'decision', labels, title: 'Importance of decisions', width })
}
