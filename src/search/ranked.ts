/** Points of a space in the order of what the cost model expects of them, of many points by predicting few. */
import type { Kernel } from '../api/kernel.ts'
import { expectArgument, expectOptions } from '../ast/expect-argument.ts'
import { COUNT, expectValues } from '../ast/value-kinds.ts'
import { type PriorOptions, rankingOf } from './cost-model.ts'
import { estimated } from './ranking/estimated.ts'
import type { Predict } from './ranking/origin.ts'
import { atOnce } from './stepwise.ts'
import type { KernelSpace, Point } from './types.ts'

export interface RankedPoint {
  readonly point: Point
  /** Expected; `Infinity` of what is refused, or of which the model has no number. */
  readonly milliseconds: number
  /** Standard deviation of the logarithm of what is estimated from other points; 0 where the model predicted the point. */
  readonly deviation: number
}

export interface RankedOptions extends PriorOptions {
  /** About so many are predicted, where there are twice as many and more; 200. `Infinity`: all. */
  readonly predicted?: number | undefined
}

const PREDICTED = 200

/**
 * Fastest first. Of many points some of each form are predicted, then those that Gaussian process regression over their
 * decisions expects to be fast; the others are estimated by it. The first 16 are always predicted.
 * @param predict what `predictor` gives
 */
export function ranked(
  space: KernelSpace<Kernel>,
  predict: Predict,
  points: readonly Point[],
  options: RankedOptions = {},
): readonly RankedPoint[] {
  expectOptions('ranked', options, ['predicted', 'threads'])
  expectArgument(Array.isArray(points), 'points', points, 'a list of points')
  const { predicted = PREDICTED, threads } = options
  if (predicted !== Number.POSITIVE_INFINITY) expectValues({ predicted }, { predicted: COUNT })
  // Rounds are short, and threads that began for the first have part in all.
  const ranking = rankingOf(space, predict, { threads }, Math.min(points.length, predicted))
  const costs = atOnce(estimated(points, predicted, (some) => ranking.costs(some)))
  return points.map((point, k) => ({ point, ...costs[k]! })).sort((a, b) => a.milliseconds - b.milliseconds)
}
