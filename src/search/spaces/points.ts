/** Enumerates, samples, mutates and checks points of any `PointSpace`; every function stops at its limit. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { runSync } from '../../ast/work.ts'
import type { Point, PointSpace } from '../types.ts'
import {
  checkLimit,
  checkSpace,
  checkSteps,
  crossoverSteps,
  drawSteps,
  mutateSteps,
  neighbourSteps,
  type Random,
  repairSteps,
  walkPoints,
} from './point-walks.ts'

export { withValue } from './counter.ts'
export { COUNT_LIMIT, pointKey, type Random } from './point-walks.ts'

/** Default limit for enumerating a space. */
export const LIST_LIMIT = 100_000

/** Every point, in the order of the values, generated lazily. */
export function* points(space: PointSpace, from: Point = {}): Generator<Point> {
  for (const point of walkPoints(space, from)) if (point) yield point
}

/** All points, if there are at most `limit` (100,000). @throws SptError `space/too-many-points` */
export function listPoints(space: PointSpace, limit: number = LIST_LIMIT): readonly Point[] {
  checkSpace(space)
  checkLimit(limit)
  const out: Point[] = []
  for (const point of points(space)) {
    if (out.length >= limit)
      failWith('space/too-many-points', `${space.name} has more than ${limit} points`, {
        expected: 'a space that can be gone through, or a larger limit',
        hint: 'draw some of them, or search with a strategy',
      })
    out.push(point)
  }
  return out
}

/**
 * A random point; `null` if there is none, or 20,000 values led to dead ends. Uniform over all points if they can be counted;
 * otherwise each decision is uniform over its values, except for likely ones (`OpenDecision.likely`), with backtracking from
 * dead ends.
 */
export function samplePoint(space: PointSpace, random: Random): Point | null {
  checkSpace(space)
  expectArgument(typeof random === 'function', 'random', random, 'a function: Math.random')
  return runSync(drawSteps(space, random))
}

/**
 * A legal point near `wanted`: values of `wanted` where the space allows them, otherwise the nearest allowed number; missing
 * decisions are random, or the first value without `random`. `null`: none was found.
 */
export const repairPoint = (space: PointSpace, wanted: Point, random?: Random): Point | null =>
  runSync(repairSteps(space, wanted, random))

/**
 * The points that differ from `point` in one decision, as little as that can: the others are kept where they are still
 * allowed. Each once, without `point` itself.
 */
export const neighbours = (space: PointSpace, point: Point): readonly Point[] =>
  runSync(neighbourSteps(space, point))

/**
 * A point that differs from `point` in one random decision and in the decisions that depend on it; `null` if no decision can
 * change.
 */
export const mutate = (space: PointSpace, point: Point, random: Random): Point | null =>
  runSync(mutateSteps(space, point, random))

/**
 * A crossover: a random mixture of the values of two points, which keeps their common values where the space allows it.
 * `null`: none was found.
 */
export const crossover = (space: PointSpace, a: Point, b: Point, random: Random): Point | null =>
  runSync(crossoverSteps(space, a, b, random))

/**
 * The point with its values in the order of the decisions.
 * @throws SptError `space/point` where a value is missing, not allowed, or of no decision
 */
export const checkPoint = (space: PointSpace, point: Point): Point => runSync(checkSteps(space, point))
