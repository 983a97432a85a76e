/** Number of points of a space: counted, or estimated if counting takes too long. */

import { atOnce } from '../stepwise.ts'
import type { Point, PointSpace } from '../types.ts'
import type { Counted } from './counter.ts'
import { wholeOutline } from './outline/enumeration.ts'
import { estimatePoints } from './outline/sampling.ts'
import { COUNT_LIMIT, checkLimit, checkSpace, counting } from './point-walks.ts'

export interface PointCount extends Counted {
  /** Number of points actually found, if `points` is an estimate. */
  readonly lowerBound?: number
}

/**
 * Number of points of a space. If the space defines `remainderKey`, partial points with equal rests are counted once. Spaces that are
 * too large are estimated as by `outline`, so that both report the same number.
 * @param limit number of decision values to visit before estimating
 * @throws SptError as `space.next`; `api/argument`
 */
export function count(space: PointSpace, limit: number = COUNT_LIMIT, from: Point = {}): PointCount {
  checkSpace(space)
  checkLimit(limit)
  const { points, isExact } = atOnce(counting(space, limit, from))
  if (isExact) return { points, isExact }
  const remainder: PointSpace = {
    name: space.name,
    next: (partial) => space.next({ ...from, ...partial }),
    ...(space.remainderKey && { remainderKey: (partial) => space.remainderKey!({ ...from, ...partial }) }),
  }
  const outline = space.remainderKey ? wholeOutline(remainder, Math.min(limit, COUNT_LIMIT)) : null
  if (outline) return { points: outline.points, isExact: true }
  return {
    points: Math.max(points, Math.round(estimatePoints(remainder))),
    isExact: false,
    lowerBound: points,
  }
}
