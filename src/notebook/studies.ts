/** Results of a search: the best points, how it came to them, what was refused, and predictions against measurements. */
import type { Point, Timing, Trial } from '../search/types.ts'
import { lines, scatter } from './chart/index.ts'
import type { Shown } from './display.ts'
import type { Figure } from './figure.ts'
import { table } from './table.ts'

interface Measured {
  readonly point: Point
  readonly timing: Timing
  readonly predicted: number | undefined
  /** Which trial it was, from 1. */
  readonly trial: number
}

const measured = (trials: readonly Trial[]): Measured[] =>
  trials.flatMap(({ point, outcome, predicted }, k) =>
    outcome.status === 'measured' ? [{ point, timing: outcome.timing, predicted, trial: k + 1 }] : [],
  )

/** The fastest measured points, first the best: their decisions, median milliseconds with the interval, the prediction. */
export function best(trials: readonly Trial[], count = 10): Shown {
  const sorted = measured(trials).sort((a, b) => a.timing.median - b.timing.median)
  const predicted = sorted.some((m) => m.predicted !== undefined)
  return table(
    sorted.slice(0, count).map(({ point, timing, trial, predicted: expected }) => ({
      trial,
      ...point,
      ms: timing.median,
      from: timing.interval[0],
      to: timing.interval[1],
      ...(predicted ? { predicted: expected } : {}),
    })),
  )
}

type Studies = readonly Trial[] | Readonly<Record<string, readonly Trial[]>>
const isList = (studies: Studies): studies is readonly Trial[] => Array.isArray(studies)

/**
 * The best time so far after each trial; refused trials count. Several studies of one space are told apart by name.
 * @throws SptError `notebook/no-rows` where nothing was measured
 */
export function convergence(studies: Studies): Figure {
  const list: readonly (readonly [string, readonly Trial[]])[] = isList(studies)
    ? [['study', studies]]
    : Object.entries(studies)
  const rows = list.flatMap(([study, trials]) => {
    let least = Infinity
    return trials.flatMap(({ outcome }, k) => {
      if (outcome.status === 'measured') least = Math.min(least, outcome.timing.median)
      return least < Infinity ? [{ study, trial: k + 1, ms: least }] : []
    })
  })
  return lines(rows, {
    x: 'trial',
    y: 'ms',
    ...(list.length > 1 ? { color: 'study' } : {}),
    title: 'Best so far',
    labels: { x: 'trials', y: 'milliseconds' },
  })
}

/** How many trials ended in which way: measured, or refused, failed or wrong, by code with one of the messages. */
export function outcomes(trials: readonly Trial[]): Shown {
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
 * Expected against measured milliseconds, a point for each trial that has both; on the line they are equal.
 * @throws SptError `notebook/no-rows` where there is none
 */
export function predictions(trials: readonly Trial[]): Figure {
  const rows = measured(trials).flatMap(({ timing, predicted }) =>
    predicted === undefined ? [] : [{ predicted, measured: timing.median }],
  )
  return scatter(rows, {
    x: 'predicted',
    y: 'measured',
    log: 'xy',
    diagonal: true,
    title: 'Predicted and measured milliseconds',
    height: 360,
  })
}
