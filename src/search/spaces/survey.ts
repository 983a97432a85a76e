/** Applies the steps of points without running them, and counts the legal ones. */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { runSync } from '../../ast/work.ts'
import type { SearchTally } from '../loop/tally.ts'
import type { KernelSpace, Point, PointSpace } from '../types.ts'
import type { Counted } from './counter.ts'
import { wholeOutline } from './outline/enumeration.ts'
import { estimatePoints } from './outline/sampling.ts'
import { COUNT_LIMIT, checkLimit, checkSpace, countSteps } from './point-walks.ts'
import { points, type Random, samplePoint } from './points.ts'

/** Number of legal points, and of rejected ones by code. */
export interface Survey {
  readonly legal: number
  /** Number of rejected points by diagnostic code, most frequent first. */
  readonly rejectedByCode: SearchTally['rejectedByCode']
  /** True if all points of the space were tried. */
  readonly isComplete: boolean
}

export interface SurveyOptions {
  /** Points that are tried at most; 1000. */
  readonly limit?: number | undefined
  /** Samples random points instead of the first ones; none if none is found. */
  readonly random?: Random | undefined
}

/** Applies points by their steps, compiling nothing. @throws SptError as `space.next` */
export function survey(space: KernelSpace<unknown>, options: SurveyOptions = {}): Survey {
  expectOptions('survey', options, ['limit', 'random'])
  const { limit = 1000, random } = options
  expectArgument(Number.isSafeInteger(limit) && limit > 0, 'limit', limit, 'a number of points: 1000')
  const rejected = new Map<string, number>()
  let tried = 0
  let legal = 0
  let isComplete = random === undefined
  for (const point of random ? randomPoints(space, random) : points(space)) {
    if (tried++ >= limit) {
      isComplete = false
      break
    }
    const code = rejectionCode(space, point)
    if (code === null) legal++
    else rejected.set(code, (rejected.get(code) ?? 0) + 1)
  }
  const rejectedByCode = Object.fromEntries([...rejected].sort(([, a], [, b]) => b - a))
  return { legal, rejectedByCode, isComplete }
}

/** Code of the diagnostic that rejects a point; `null` if it is legal. */
export function rejectionCode(space: KernelSpace<unknown>, point: Point): string | null {
  try {
    space.kernel(point)
    return null
  } catch (e) {
    if (e instanceof SptError) return e.code
    throw e
  }
}

function* randomPoints(space: KernelSpace<unknown>, random: Random): Generator<Point> {
  for (let point = samplePoint(space, random); point; point = samplePoint(space, random)) yield point
}

// Number of points of a space: counted, or estimated if counting takes too long.

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
export function count(space: PointSpace, limit: number = COUNT_LIMIT): PointCount {
  checkSpace(space)
  checkLimit(limit)
  const { points, isExact } = runSync(countSteps(space, limit))
  if (isExact) return { points, isExact }
  const outline = space.remainderKey ? wholeOutline(space, Math.min(limit, COUNT_LIMIT)) : null
  if (outline) return { points: outline.points, isExact: true }
  return {
    points: Math.max(points, Math.round(estimatePoints(space))),
    isExact: false,
    lowerBound: points,
  }
}
