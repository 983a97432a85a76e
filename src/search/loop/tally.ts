/** Intermediate result of a search. */
import { pointKey } from '../spaces/points.ts'
import type { Outcome, Point, PointSpace, Trial } from '../types.ts'

/** A result that differs from the reference. */
export interface WrongResult {
  readonly space: string
  readonly point: Point
  readonly message: string
  /** The steps of the point, if the evaluation reported them. */
  readonly trace?: string | undefined
  /** Seed of the inputs, if the evaluation reported it. */
  readonly seed?: number | undefined
}

export interface SearchTally {
  /** Trial with the smallest median among those with the greatest share. */
  readonly best: Trial | null
  /** Number of rejected points by diagnostic code. */
  readonly rejectedByCode: Readonly<Record<string, number>>
  readonly failed: number
  /** Points that were not tried; `undefined` where the space is too large to be counted. */
  readonly remaining: number | undefined
}

export class Tally {
  readonly trials: Trial[] = []
  readonly wrong: WrongResult[] = []
  readonly #disqualified = new Set<string>()
  readonly #tried = new Set<string>()
  readonly #rejected = new Map<string, number>()
  #failed = 0
  #best: Trial | null = null
  sinceBest = 0

  /** @param points of the space; `undefined`: too many to be counted */
  constructor(
    private readonly space: PointSpace,
    private readonly points: number | undefined,
  ) {}

  add(trials: readonly Trial[]): void {
    for (const trial of trials) {
      this.trials.push(trial)
      const { point, outcome } = trial
      const key = pointKey(point)
      this.#tried.add(key)
      this.sinceBest++
      if (outcome.status === 'rejected')
        this.#rejected.set(outcome.code, (this.#rejected.get(outcome.code) ?? 0) + 1)
      else if (outcome.status === 'failed') this.#failed++
      else if (outcome.status === 'wrong') this.#disqualify(key, trial)
      else if (!this.#disqualified.has(key) && isBetter(trial, this.#best)) {
        this.#best = trial
        this.sinceBest = 0
      }
    }
  }

  #disqualify(key: string, { point, outcome }: Trial): void {
    if (outcome.status !== 'wrong') return
    const { message, trace, seed } = outcome
    this.wrong.push({ space: this.space.name, point, message, trace, seed })
    this.#disqualified.add(key)
    if (this.#best && pointKey(this.#best.point) === key)
      this.#best = this.trials
        .filter((t) => !this.#disqualified.has(pointKey(t.point)))
        .reduce<Trial | null>((best, t) => (isBetter(t, best) ? t : best), null)
  }

  get found(): SearchTally {
    return {
      best: this.#best,
      rejectedByCode: Object.fromEntries(this.#rejected),
      failed: this.#failed,
      remaining: this.points === undefined ? undefined : Math.max(0, this.points - this.#tried.size),
    }
  }
}

/** True if a trial was measured with a greater share than the best, or with an equal share and a shorter time. */
function isBetter({ outcome, share = 1 }: Trial, best: Trial | null): boolean {
  if (outcome.status !== 'measured' || !Number.isFinite(outcome.timing.median)) return false
  if (best?.outcome.status !== 'measured') return true
  const bestShare = best.share ?? 1
  return share > bestShare || (share === bestShare && outcome.timing.median < best.outcome.timing.median)
}

// Ranking of measured items by time.

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

/** Number of points measured again at the end: the minimum of many noisy times is biased. */
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
