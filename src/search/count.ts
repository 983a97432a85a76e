/** Number of points of a space: counted, or estimated if counting takes too long. */
import type { Counted } from './counter.ts'
import { estimatedPoints } from './outline/sampled.ts'
import { wholeOutline } from './outline/whole.ts'
import { COUNTED_VALUES, checkLimit, checkSpace, counting } from './point-walks.ts'
import { atOnce } from './stepwise.ts'
import type { Point, PointSpace } from './types.ts'

export interface PointCount extends Counted {
  /** Number of points actually found, if `points` is an estimate. */
  readonly atLeast?: number
}

/**
 * Number of points of a space. If the space defines `rest`, partial points with equal rests are counted once. Spaces that are
 * too large are estimated as by `outline`, so that both report the same number.
 * @param limit number of decision values to visit before estimating
 * @throws SptError as `space.next`; `api/argument`
 */
export function count(space: PointSpace, limit: number = COUNTED_VALUES, from: Point = {}): PointCount {
  checkSpace(space)
  checkLimit(limit)
  const { points, isExact } = atOnce(counting(space, limit, from))
  if (isExact) return { points, isExact }
  const below: PointSpace = {
    name: space.name,
    next: (partial) => space.next({ ...from, ...partial }),
    ...(space.rest && { rest: (partial) => space.rest!({ ...from, ...partial }) }),
  }
  const whole = space.rest ? wholeOutline(below, Math.min(limit, COUNTED_VALUES)) : null
  if (whole) return { points: whole.points, isExact: true }
  return { points: Math.max(points, Math.round(estimatedPoints(below))), isExact: false, atLeast: points }
}
