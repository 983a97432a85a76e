/** Trials by two of time, memory and error, and the decisions that account for their times. */
import { expectArgument, expectOptions } from '../ast/expect-argument.ts'
import { colorOf } from '../pictures/picture/svg.ts'
import { decisionImportance } from '../search/importance.ts'
import type { Trial } from '../search/types.ts'
import { expectRows } from './chart/channels.ts'
import { bars } from './chart/index.ts'
import { layered } from './chart/layers.ts'
import type { Figure } from './figure.ts'
import { checkTrials, PALE } from './studies.ts'

/** Trial of `tune` or of the records. */
export type WeighedTrial = Trial & {
  readonly bytes?: number | undefined
  readonly relativeError?: number | undefined
}

type Measure = (trial: WeighedTrial) => number | undefined
const MEASURES = {
  ms: (t) => (t.outcome.status === 'measured' ? t.outcome.timing.median : undefined),
  bytes: (t) => t.bytes,
  relativeError: (t) => t.relativeError,
} as const satisfies Readonly<Record<string, Measure>>
const LABELS = { ms: 'milliseconds', bytes: 'bytes on the device', relativeError: 'relative error' } as const

export type ParetoMeasure = keyof typeof MEASURES
type Both = readonly [ParetoMeasure, ParetoMeasure]

export interface ParetoOptions {
  /** The two quantities to minimise, horizontal then vertical; `['ms', 'bytes']`. */
  readonly by?: Both | undefined
  /** Pixels; 720. */
  readonly width?: number | undefined
}

interface Weighed<T> {
  readonly trial: T
  readonly x: number
  readonly y: number
}

function weighed<T extends WeighedTrial>(trials: readonly T[], [along, up]: Both): readonly Weighed<T>[] {
  return trials.flatMap((trial) => {
    const [x, y] = [MEASURES[along](trial), MEASURES[up](trial)]
    return trial.outcome.status !== 'measured' || x === undefined || y === undefined ? [] : [{ trial, x, y }]
  })
}

/** Those than which none is as small in both and smaller in one. */
function frontOf<T>(all: readonly Weighed<T>[]): readonly Weighed<T>[] {
  const front: Weighed<T>[] = []
  for (const w of all.toSorted((a, b) => a.x - b.x || a.y - b.y))
    if (w.y < (front.at(-1)?.y ?? Number.POSITIVE_INFINITY)) front.push(w)
  return front
}

/** @throws SptError `api/argument` */
function checkWeighed(trials: readonly WeighedTrial[], by: Both): void {
  checkTrials(trials)
  const isBy = Array.isArray(by) && by.length === 2 && by.every((b) => Object.hasOwn(MEASURES, b))
  expectArgument(isBy, 'by', by, `two of ${Object.keys(MEASURES).join(', ')}`)
}

/**
 * The Pareto front: measured trials that no other trial dominates in both measures, sorted by the first of `by`.
 * @throws SptError `api/argument`
 */
export function paretoFront<T extends WeighedTrial>(
  trials: readonly T[],
  by: Both = ['ms', 'bytes'],
): readonly T[] {
  checkWeighed(trials, by)
  return frontOf(weighed(trials, by)).map((w) => w.trial)
}

/**
 * Measured trials by two measures, with their Pareto front.
 * @throws SptError `notebook/no-rows` where no trial has both
 */
export function pareto(trials: readonly WeighedTrial[], options: ParetoOptions = {}): Figure {
  expectOptions('pareto', options, ['by', 'width'])
  const { by = ['ms', 'bytes'], width } = options
  checkWeighed(trials, by)
  const all = weighed(trials, by)
  expectRows(all)
  const front = frontOf(all)
  const log = `${all.every((w) => w.x > 0) ? 'x' : ''}${all.every((w) => w.y > 0) ? 'y' : ''}`
  const [x, y] = by.map((b) => LABELS[b]) as [string, string]
  return layered(
    [
      { shape: 'dots', points: all, color: PALE, name: 'trials', radius: 2.5, opacity: 1 },
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
