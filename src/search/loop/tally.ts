/** Intermediate result of a search. */
import { pointKey } from '../spaces/points.ts'
import type { Point, PointSpace, Trial } from '../types.ts'

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
  readonly #space: PointSpace
  readonly #points: number | undefined
  readonly trials: Trial[] = []
  readonly wrong: WrongResult[] = []
  readonly #disqualified = new Set<string>()
  readonly #tried = new Set<string>()
  readonly #rejected = new Map<string, number>()
  #failed = 0
  #best: Trial | null = null
  /** Trials since there was a better one. */
  sinceBest = 0

  /** @param points of the space; `undefined`: too many to be counted */
  constructor(space: PointSpace, points: number | undefined) {
    this.#space = space
    this.#points = points
  }

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
    this.wrong.push({ space: this.#space.name, point, message, trace, seed })
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
      remaining: this.#points === undefined ? undefined : Math.max(0, this.#points - this.#tried.size),
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
