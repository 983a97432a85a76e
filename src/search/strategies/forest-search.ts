/** Strategies that learn times from reported trials and propose points with the greatest expected improvement. */
import { all, counting, neighbouring, pointKey } from '../point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Point } from '../types.ts'
import { Columns } from './features.ts'
import { Forest } from './forest.ts'
import { StrategyBase } from './strategy-base.ts'

/** Points among which one is looked for. */
const POOL = 512
/** Decisions that may be looked at for each of them. */
const COUNTED = 8
/** Measured points whose neighbours are looked at. */
const LEADERS = 6
/** Forests are grown anew when there is so much more to learn from. */
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
  /** Asked since the last scores. */
  #pending: Point[] = []

  /** Results before which `initial` is asked. */
  protected abstract readonly initialPoints: number

  protected abstract initial(): Stepwise<Point | null>

  /** Log milliseconds that are taken off before the forest learns the rest. */
  protected *trend(points: readonly Point[]): Stepwise<readonly number[]> {
    yield
    return points.map(() => 0)
  }

  protected *next(): Stepwise<Point | null> {
    if (this.told.size < this.initialPoints || this.told.measured().length < 2) return yield* this.initial()
    if (this.told.version !== this.#learnt.version) yield* this.#learn()
    return yield* this.unseen.fresh(() => this.#best())
  }

  *#best(): Stepwise<Point | null> {
    let best: Score | null = null
    for (const { point, score } of this.#scores) {
      // Alike points of one batch teach the same.
      const apart = this.#pending.reduce((a, p) => a * (1 - alike(p, point) ** 2), score)
      if ((!best || apart > best.score) && (yield* this.unseen.has(point))) best = { point, score: apart }
    }
    if (best) this.#pending.push(best.point)
    return best?.point ?? null
  }

  *#learn(): Stepwise<void> {
    const measured = this.told.measured()
    const { size, version } = this.told
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
      const works = this.#usable ? this.#usable.predict(rows[k]!).mean : 1
      return { point, score: works * improvement(best, trend[k]! + mean, deviation) }
    })
  }

  *#grow(): Stepwise<void> {
    const told = this.told.all()
    const measured = this.told.measured()
    // The prior, where there is one, is the first column.
    const first = this.hasPrior ? 1 : 0
    const isNominal = (c: number): boolean => c >= first && this.#columns.isNominal(c - first)
    const trend = yield* this.trend(measured.map((t) => t.point))
    const rows = yield* this.#rowsOf(measured.map((t) => t.point))
    const rest = measured.map((t, k) => Math.log(t.ms) - trend[k]!)
    this.#times = Forest.fit(rows, rest, this.random, { isNominal })
    yield
    const works = told.map((t) => (t.ms === null ? 0 : 1))
    this.#usable = works.includes(0)
      ? Forest.fit(yield* this.#rowsOf(told.map((t) => t.point)), works, this.random, { isNominal })
      : null
  }

  /** Fills the pool with random points at first, later with neighbours of the best; taken points are replaced. */
  *#fill(leaders: readonly Point[]): Stepwise<void> {
    for (const [key, point] of this.#pool) if (!(yield* this.unseen.has(point))) this.#pool.delete(key)
    if (!this.#isFilled || this.#pool.size < POOL / 2)
      yield* this.#add(yield* this.candidates(this.#isFilled ? POOL / 8 : POOL))
    this.#isFilled = true
    for (const leader of leaders) {
      const key = pointKey(leader)
      if (this.#expanded.has(key)) continue
      this.#expanded.add(key)
      yield* this.#add(yield* neighbouring(this.space, leader))
    }
  }

  *#add(more: readonly Point[]): Stepwise<void> {
    for (const point of yield* this.notTaken(more)) this.#pool.set(pointKey(point), point)
  }

  /** All points of a small space, some of a large one. */
  protected *candidates(most: number): Stepwise<readonly Point[]> {
    const counted = yield* counting(this.space, most * COUNTED)
    return counted.isExact && counted.points <= most ? yield* all(this.space) : yield* this.drawn(most)
  }

  *#rowsOf(of: readonly Point[]): Stepwise<readonly (readonly number[])[]> {
    const expected = this.hasPrior ? yield* this.expected(of) : []
    return of.map((point, k) => {
      const key = pointKey(point)
      const row = this.#rows.get(key) ?? this.#columns.row(point)
      this.#rows.set(key, row)
      return this.hasPrior ? [expected[k]!, ...row] : row
    })
  }
}

const alike = (a: Point, b: Point): number => {
  const entries = Object.entries(a)
  return entries.length === 0 ? 1 : entries.filter(([k, v]) => b[k] === v).length / entries.length
}

/** Expected improvement on `best` of what is normal. */
function improvement(best: number, mean: number, deviation: number): number {
  const s = Math.max(deviation, 1e-3)
  const z = (best - mean) / s
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
  return s * (z * below(z) + density)
}

/** The normal distribution function, to 1e-7 (Abramowitz and Stegun, 26.2.17). */
function below(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z))
  const tail =
    (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) *
    t *
    (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z > 0 ? 1 - tail : tail
}
