import { fail } from '../../ast/diagnostic.ts'
import { all, counting, pointKey } from '../point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Point, PointSpace, StrategyFactory, StrategyOptions } from '../types.ts'
import { type Costed, rivals, varied } from './diversity.ts'
import { ForestSearch } from './forest-search.ts'

/** Points that are drawn, which the prior is asked about: for each trial that is to be, at least and at most. */
const [EACH, LEAST, POOL] = [32, 64, 2048]
/** Decisions visited per requested point to count the space. */
const COUNTED = 8
/** Spaces up to this multiple of the pool are enumerated: hill climbing would visit as many points. */
const CLIMBED = 2
/** Times that the neighbours of the best expected are looked at too, where not all points are. */
const ROUNDS = 4
/** Minimum and maximum number of leaders; otherwise the number of trials. */
const [FEW_LEADERS, LEADERS] = [4, 16]
const HALF = 1 / 2
/** Number of initial points of several kinds; half of them are proposed before measurements are used. */
const FIRST = 16
/** Variance of log times, added up over results, from which the slope is the measurements' more than 1. */
const TRUST = 1

/** Proposes the prior's best points first; then by the prior, rescaled to the measurements, with a forest on its residuals. */
export const model: StrategyFactory = (space, options) => new ModelSearch(space, options)

class ModelSearch extends ForestSearch {
  readonly name = 'model'
  protected initialPoints = 4
  #order: Point[] | null = null
  /** Points of the order that the prior was not asked about. */
  #unranked: readonly Point[] = []
  /** Number of points still to be drawn. */
  #undrawn = 0
  readonly #pool: number
  readonly #leaders: number

  /** @throws SptError `search/no-prior` */
  constructor(space: PointSpace, options: StrategyOptions) {
    super(space, options)
    const { trials = Number.POSITIVE_INFINITY } = options
    this.#pool = Math.min(POOL, Math.max(LEAST, Math.ceil(EACH * trials)))
    this.#leaders = Math.min(LEADERS, Math.max(FEW_LEADERS, Math.ceil(trials)))
    if (!this.hasPrior)
      fail({
        code: 'search/no-prior',
        message: 'the strategy model has no prior',
        expected: 'a prior that predicts the time of points',
        hint: 'surrogate needs none',
      })
  }

  protected *initial(): Stepwise<Point | null> {
    const order = yield* this.#current()
    for (;;) {
      const best = order.shift()
      if (!best) return yield* this.likelyOf(LEADERS)
      const taken = yield* this.unseen.take(best)
      if (taken) return taken
    }
  }

  protected override *candidates(): Stepwise<readonly Point[]> {
    return yield* this.#current()
  }

  /** The order; points that there was no time to draw or rank take their places as trials give time for them. */
  *#current(): Stepwise<Point[]> {
    if (!this.#order) this.#order = yield* this.#ordered()
    else if ((this.#undrawn > 0 || this.#unranked.length > 0) && this.mayRank) {
      const before = new Set(this.#order.map(pointKey))
      const more = (yield* this.#drawnFrom(this.#undrawn)).filter((p) => !before.has(pointKey(p)))
      this.#order = yield* this.#sortedAll([...this.#order, ...more])
    }
    return this.#order
  }

  *#drawnFrom(count: number): Stepwise<readonly Point[]> {
    // What is drawn takes as much of the time as the prior does.
    const { points, left } = yield* this.drawnInTime(count, HALF * HALF)
    this.#undrawn = left
    return points
  }

  *#ordered(): Stepwise<Point[]> {
    const most = Math.min(POOL, CLIMBED * this.#pool)
    const counted = yield* counting(this.space, COUNTED * most)
    if (counted.isExact && counted.points <= most) return yield* this.#sortedAll(yield* all(this.space))
    const pool = new Map((yield* this.#drawnFrom(this.#pool)).map((p) => [pointKey(p), p]))
    const expanded = new Set<Point>()
    for (let round = 0; round < ROUNDS; round++)
      // Of the time for ranking, what is near the best takes as much as what was drawn.
      for (const leader of varied(yield* this.#sorted([...pool.values()], HALF), this.#leaders)) {
        if (expanded.has(leader)) continue
        expanded.add(leader)
        for (const near of yield* this.neighboursInTime(leader))
          if (!pool.has(pointKey(near))) pool.set(pointKey(near), near)
      }
    return yield* this.#sortedAll([...pool.values()])
  }

  *#sortedAll(points: readonly Point[]): Stepwise<Point[]> {
    const order = this.#variedFirst(yield* this.#sorted(points))
    this.#unranked = this.unranked(order)
    return order
  }

  #variedFirst(order: readonly Costed[]): Point[] {
    this.initialPoints = Math.max(this.initialPoints, Math.min(FIRST / 2, rivals(order)))
    const first = varied(order, FIRST)
    const taken = new Set(first)
    return [...first, ...order.flatMap(({ point }) => (taken.has(point) ? [] : [point]))]
  }

  *#sorted(of: readonly Point[], share = 1): Stepwise<readonly Costed[]> {
    const expected = yield* this.expected(of, share)
    const order = of.map((_, k) => k).sort((a, b) => expected[a]! - expected[b]! || a - b)
    return order.map((k) => ({ point: of[k]!, cost: expected[k]! }))
  }

  /** Log times by a line through what was measured, of slope 1 where little was. */
  protected override *trend(of: readonly Point[]): Stepwise<readonly number[]> {
    const measured = this.told.measured()
    const expected = yield* this.expected([...measured.map((t) => t.point), ...of])
    // Times are put to logarithms, other scales stay as they are.
    const scaled = expected.every((e) => e > 0) ? expected.map(Math.log) : expected
    const y = measured.map((t) => Math.log(t.ms))
    const x = scaled.slice(0, y.length)
    const known = x.flatMap((v, k) => (Number.isFinite(v) ? [k] : []))
    const mean = (v: readonly number[]): number =>
      known.reduce((a, k) => a + v[k]!, 0) / Math.max(1, known.length)
    const [mx, my] = [mean(x), mean(y)]
    const [xx, xy] = known.reduce(
      ([a, b], k) => [a + (x[k]! - mx) ** 2, b + (x[k]! - mx) * (y[k]! - my)],
      [TRUST, TRUST],
    )
    const slope = Math.max(0, xy / xx)
    const worst = known.reduce((w, k) => Math.max(w, x[k]!), mx)
    return scaled.slice(y.length).map((v) => my + slope * ((Number.isFinite(v) ? v : worst) - mx))
  }
}
