/** How many points a space has: counted, or estimated where counting takes too long. */
import type { Counted } from './counter.ts'
import { estimatedPoints } from './outline/sampled.ts'
import { wholeOutline } from './outline/whole.ts'
import { COUNTED_VALUES, checkLimit, checkSpace, counting } from './point-walks.ts'
import { atOnce } from './stepwise.ts'
import type { Point, PointSpace } from './types.ts'

export interface PointCount extends Counted {
  /** Where `points` is an estimate: how many were found. */
  readonly atLeast?: number
}

/**
 * How many points a space has. Where it says what the rest of it depends on (`rest`), equal rests are counted once. A space that is
 * too large is estimated as by `outline`, so that both give one number.
 * @param limit values of decisions to look at before it is estimated
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
