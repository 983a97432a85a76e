/** Ranking of measured items by time. */
import { pointKey } from '../spaces/points.ts'
import type { Outcome, Point, Trial } from '../types.ts'

/** Measured items, fastest first. */
export const fastestOf = <T extends { readonly outcome: Outcome }>(of: readonly T[]): readonly T[] =>
  of
    .flatMap((t) => (t.outcome.status === 'measured' ? [{ t, median: t.outcome.timing.median }] : []))
    .sort((a, b) => a.median - b.median)
    .map(({ t }) => t)

/**
 * Points that a search measured, the better known and then the faster first, as its `best` is: each once, with its largest
 * share of a measurement, and none that was wrong.
 */
export function fastestTrials<T extends Trial>({
  trials,
  wrong,
}: {
  readonly trials: readonly T[]
  readonly wrong: readonly { readonly point: Point }[]
}): readonly T[] {
  const share = (t: T): number => t.share ?? 1
  const isWrong = new Set(wrong.map((w) => pointKey(w.point)))
  const byPoint = new Map<string, T>()
  for (const t of fastestOf(trials)) {
    const key = pointKey(t.point)
    const before = byPoint.get(key)
    if (!isWrong.has(key) && (!before || share(t) > share(before))) byPoint.set(key, t)
  }
  return fastestOf([...byPoint.values()]).toSorted((a, b) => share(b) - share(a))
}

/**
 * Number of points measured again at the end: a minimum, plus those with similar times, because the minimum of many noisy
 * times is biased.
 */
const FINALISTS = { least: 3, most: 8, near: 1.1 } as const

/** Candidates for the fastest measured point, fastest first. */
export function finalists<T extends Trial>(found: Parameters<typeof fastestTrials<T>>[0]): readonly T[] {
  const points = fastestTrials(found)
  const median = ({ outcome }: T): number =>
    outcome.status === 'measured' ? outcome.timing.median : Number.POSITIVE_INFINITY
  const best = Math.min(...points.map(median))
  return points
    .slice(0, FINALISTS.most)
    .filter((t, k) => k < FINALISTS.least || median(t) <= FINALISTS.near * best)
}
