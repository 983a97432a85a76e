/** Strategies that learn times from reported trials and propose points with the greatest expected improvement. */

import type { Coroutine } from '../../ast/work.ts'
import { collectPoints, countSteps, neighbourSteps, pointKey } from '../spaces/point-walks.ts'
import type { Point } from '../types.ts'
import { Columns, Forest } from './forest.ts'
import { StrategyBase } from './strategy-base.ts'

/** Number of points among which the best is selected. */
const POOL_SIZE = 512
/** Decisions visited per requested point to count the space. */
const COUNT_EFFORT = 8
/** Number of fastest points whose neighbours are added. */
const LEADERS = 6
/** Relative growth of the number of results after which forests are fitted again. */
const GROWTH = 1 / 24

interface Score {
  readonly point: Point
  readonly score: number
}

export abstract class ForestSearch extends StrategyBase {
  readonly #columns = new Columns()
  readonly #rows = new Map<string, readonly number[]>()
  readonly #pool = new Map<string, Point>()
  readonly #expanded = new Set<string>()
  #isFilled = false
  #learnt = { size: -1, version: -1 }
  #times: Forest | null = null
  #usable: Forest | null = null
  #scores: readonly Score[] = []
  /** Points proposed since the last scores. */
  #pending: Point[] = []

  /** Number of results before which `initial` proposes points. */
  protected abstract readonly initialPoints: number

  protected abstract initial(): Coroutine<Point | null>

  /** Log milliseconds subtracted before the forest learns the residuals. */
  protected *trend(points: readonly Point[]): Coroutine<readonly number[]> {
    yield
    return points.map(() => 0)
  }

  protected *next(): Coroutine<Point | null> {
    if (this.reported.size < this.initialPoints || this.reported.measured().length < 2)
      return yield* this.initial()
    if (this.reported.version !== this.#learnt.version) yield* this.#learn()
    return yield* this.untaken.fresh(() => this.#best())
  }

  *#best(): Coroutine<Point | null> {
    let best: Score | null = null
    for (const { point, score } of this.#scores) {
      // Similar points in one batch provide little additional information.
      const discounted = this.#pending.reduce((a, p) => a * (1 - similarity(p, point) ** 2), score)
      if ((!best || discounted > best.score) && (yield* this.untaken.has(point)))
        best = { point, score: discounted }
    }
    if (best) this.#pending.push(best.point)
    return best?.point ?? null
  }

  *#learn(): Coroutine<void> {
    const measured = this.reported.measured()
    const { size, version } = this.reported
    if (!this.#times || size - this.#learnt.size >= size * GROWTH) {
      yield* this.#grow()
      this.#learnt = { size, version }
    } else this.#learnt = { ...this.#learnt, version }
    yield* this.#fill(measured.slice(0, LEADERS).map((t) => t.point))
    this.#pending = []
    const pool = [...this.#pool.values()]
    const trend = yield* this.trend(pool)
    const rows = yield* this.#rowsOf(pool)
    const best = Math.log(measured[0]!.ms)
    this.#scores = pool.map((point, k) => {
      const { mean, deviation } = this.#times!.predict(rows[k]!)
      const validity = this.#usable ? this.#usable.predict(rows[k]!).mean : 1
      return { point, score: validity * expectedImprovement(best, trend[k]! + mean, deviation) }
    })
  }

  *#grow(): Coroutine<void> {
    const reported = this.reported.all()
    const measured = this.reported.measured()
    // The prior's prediction, if there is one, is the first column.
    const first = this.hasPrior ? 1 : 0
    const isNominal = (c: number): boolean => c >= first && this.#columns.isNominal(c - first)
    const trend = yield* this.trend(measured.map((t) => t.point))
    const rows = yield* this.#rowsOf(measured.map((t) => t.point))
    const residuals = measured.map((t, k) => Math.log(t.ms) - trend[k]!)
    this.#times = Forest.fit(rows, residuals, this.random, isNominal)
    yield
    const validity = reported.map((t) => (t.ms === null ? 0 : 1))
    this.#usable = validity.includes(0)
      ? Forest.fit(yield* this.#rowsOf(reported.map((t) => t.point)), validity, this.random, isNominal)
      : null
  }

  /** Fills the pool with random points at first, later with neighbours of the best; taken points are replaced. */
  *#fill(leaders: readonly Point[]): Coroutine<void> {
    for (const [key, point] of this.#pool) if (!(yield* this.untaken.has(point))) this.#pool.delete(key)
    if (!this.#isFilled || this.#pool.size < POOL_SIZE / 2)
      yield* this.#add(yield* this.candidates(this.#isFilled ? POOL_SIZE / 8 : POOL_SIZE))
    this.#isFilled = true
    for (const leader of leaders) {
      const key = pointKey(leader)
      if (this.#expanded.has(key)) continue
      this.#expanded.add(key)
      yield* this.#add(yield* neighbourSteps(this.space, leader))
    }
  }

  *#add(points: readonly Point[]): Coroutine<void> {
    for (const point of yield* this.notTaken(points)) this.#pool.set(pointKey(point), point)
  }

  /** All points of a small space, some of a large one. */
  protected *candidates(count: number): Coroutine<readonly Point[]> {
    return (yield* this.allPoints(count)) ?? (yield* this.drawn(count))
  }

  /** All points, if there are at most `count`; otherwise `null`. */
  protected *allPoints(count: number): Coroutine<readonly Point[] | null> {
    const counted = yield* countSteps(this.space, count * COUNT_EFFORT)
    return counted.isExact && counted.points <= count ? yield* collectPoints(this.space) : null
  }

  *#rowsOf(points: readonly Point[]): Coroutine<readonly (readonly number[])[]> {
    const expected = this.hasPrior ? yield* this.expected(points) : []
    return points.map((point, k) => {
      const key = pointKey(point)
      const row = this.#rows.get(key) ?? this.#columns.row(point)
      this.#rows.set(key, row)
      return this.hasPrior ? [expected[k]!, ...row] : row
    })
  }
}

const similarity = (a: Point, b: Point): number => {
  const entries = Object.entries(a)
  return entries.length === 0 ? 1 : entries.filter(([k, v]) => b[k] === v).length / entries.length
}

/** Expected improvement on `best` of a normally distributed value. */
function expectedImprovement(best: number, mean: number, deviation: number): number {
  const s = Math.max(deviation, 1e-3)
  const z = (best - mean) / s
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
  return s * (z * normalCdf(z) + density)
}

/** The normal distribution function, to 1e-7 (Abramowitz and Stegun, 26.2.17). */
function normalCdf(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z))
  const tail =
    (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) *
    t *
    (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z > 0 ? 1 - tail : tail
}

/**
 * Random-forest surrogate: one forest predicts log times, another the probability of rejection; proposes the greatest
 * expected improvement (as SMAC: Hutter et al., 2011). A prior is an additional feature, and ranks the first points.
 */
export class Surrogate extends ForestSearch {
  readonly name = 'surrogate'
  protected readonly initialPoints = 10

  protected initial(): Coroutine<Point | null> {
    return this.hasPrior ? this.likelyOf(32) : this.spread()
  }
}
