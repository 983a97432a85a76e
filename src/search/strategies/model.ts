import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { groupBy } from '../../ir/memoize.ts'
import { pointKey } from '../spaces/point-walks.ts'
import type { Point, PointSpace, StrategyOptions } from '../types.ts'
import { ForestSearch } from './forest-search.ts'

/** Number of random points ranked by the prior: per planned trial, minimum, and maximum. */
const [POINTS_PER_TRIAL, MIN_POOL, MAX_POOL] = [32, 64, 2048]
/** Spaces up to this multiple of the pool are enumerated: hill climbing would visit as many points. */
const ENUMERATED = 2
/** Number of times that neighbours of the best points are added, unless all points are enumerated. */
const ROUNDS = 4
/** Minimum and maximum number of leaders; otherwise the number of trials. */
const [FEW_LEADERS, LEADERS] = [4, 16]
const HALF = 1 / 2
/** Number of initial points of several kinds; half of them are proposed before measurements are used. */
const FIRST = 16
/** Prior weight of slope 1, as a variance of log times summed over results; measurements dominate above it. */
const SLOPE_PRIOR = 1

/** Proposes the prior's best points first; then by the prior, rescaled to the measurements, with a forest on its residuals. */
export class ModelSearch extends ForestSearch {
  readonly name = 'model'
  protected initialPoints = 4
  #order: Point[] | null = null
  /** Points of the order that the prior has not ranked yet. */
  #unranked: readonly Point[] = []
  #undrawn = 0
  readonly #pool: number
  readonly #leaders: number

  /** @throws SptError `search/no-prior` */
  constructor(space: PointSpace, options: StrategyOptions) {
    super(space, options)
    const { trials = Number.POSITIVE_INFINITY } = options
    this.#pool = Math.min(MAX_POOL, Math.max(MIN_POOL, Math.ceil(POINTS_PER_TRIAL * trials)))
    this.#leaders = Math.min(LEADERS, Math.max(FEW_LEADERS, Math.ceil(trials)))
    if (!this.hasPrior)
      failWith('search/no-prior', 'the strategy model has no prior', {
        expected: 'a prior that predicts the time of points',
        hint: 'surrogate needs none',
      })
  }

  protected *initial(): Coroutine<Point | null> {
    const order = yield* this.#current()
    for (;;) {
      const best = order.shift()
      if (!best) return yield* this.likelyOf(LEADERS)
      const taken = yield* this.untaken.take(best)
      if (taken) return taken
    }
  }

  protected override *candidates(): Coroutine<readonly Point[]> {
    return yield* this.#current()
  }

  /** The order of points; points not drawn or ranked for lack of time are added as trials provide time. */
  *#current(): Coroutine<Point[]> {
    if (!this.#order) this.#order = yield* this.#ordered()
    else if ((this.#undrawn > 0 || this.#unranked.length > 0) && this.mayRank) {
      const known = new Set(this.#order.map(pointKey))
      const additions = (yield* this.#drawnFrom(this.#undrawn)).filter((p) => !known.has(pointKey(p)))
      this.#order = yield* this.#sortedAll([...this.#order, ...additions])
    }
    return this.#order
  }

  *#drawnFrom(count: number): Coroutine<readonly Point[]> {
    // Drawing points takes as much of the time as ranking them.
    const { points, left } = yield* this.drawnInTime(count, HALF * HALF)
    this.#undrawn = left
    return points
  }

  *#ordered(): Coroutine<Point[]> {
    const all = yield* this.allPoints(Math.min(MAX_POOL, ENUMERATED * this.#pool))
    if (all) return yield* this.#sortedAll(all)
    const pool = new Map((yield* this.#drawnFrom(this.#pool)).map((p) => [pointKey(p), p]))
    const expanded = new Set<Point>()
    for (let round = 0; round < ROUNDS; round++)
      // Half of the ranking time is for random points, half for neighbours of the best.
      for (const leader of varied(yield* this.#sorted([...pool.values()], HALF), this.#leaders)) {
        if (expanded.has(leader)) continue
        expanded.add(leader)
        for (const neighbour of yield* this.neighboursInTime(leader))
          if (!pool.has(pointKey(neighbour))) pool.set(pointKey(neighbour), neighbour)
      }
    return yield* this.#sortedAll([...pool.values()])
  }

  *#sortedAll(points: readonly Point[]): Coroutine<Point[]> {
    const order = this.#variedFirst(yield* this.#sorted(points))
    this.#unranked = this.unranked(order)
    return order
  }

  #variedFirst(order: readonly Costed[]): Point[] {
    this.initialPoints = Math.max(this.initialPoints, Math.min(FIRST / 2, rivals(order)))
    const first = varied(order, FIRST)
    const included = new Set(first)
    return [...first, ...order.flatMap(({ point }) => (included.has(point) ? [] : [point]))]
  }

  *#sorted(points: readonly Point[], share = 1): Coroutine<readonly Costed[]> {
    const expected = yield* this.expected(points, share)
    const order = points.map((_, k) => k).sort((a, b) => expected[a]! - expected[b]! || a - b)
    return order.map((k) => ({ point: points[k]!, cost: expected[k]! }))
  }

  /** Log times by a regression line through the measurements, with slope 1 as its prior. */
  protected override *trend(points: readonly Point[]): Coroutine<readonly number[]> {
    const measured = this.reported.measured()
    const expected = yield* this.expected([...measured.map((t) => t.point), ...points])
    // Times are converted to logarithms; other scales are unchanged.
    const scaled = expected.every((e) => e > 0) ? expected.map(Math.log) : expected
    const y = measured.map((t) => Math.log(t.ms))
    const x = scaled.slice(0, y.length)
    const finite = x.flatMap((v, k) => (Number.isFinite(v) ? [k] : []))
    const mean = (v: readonly number[]): number =>
      finite.reduce((a, k) => a + v[k]!, 0) / Math.max(1, finite.length)
    const [mx, my] = [mean(x), mean(y)]
    const [xx, xy] = finite.reduce(
      ([a, b], k) => [a + (x[k]! - mx) ** 2, b + (x[k]! - mx) * (y[k]! - my)],
      [SLOPE_PRIOR, SLOPE_PRIOR],
    )
    const slope = Math.max(0, xy / xx)
    const worst = finite.reduce((w, k) => Math.max(w, x[k]!), mx)
    return scaled.slice(y.length).map((v) => my + slope * ((Number.isFinite(v) ? v : worst) - mx))
  }
}

// Diversifies points by kind: errors of a prior are correlated among similar points.

/** Ratio to the least cost up to which the best point of a kind is a rival. */
const RIVAL_FACTOR = 3

interface Costed {
  readonly point: Point
  readonly cost: number
}

/** Kind of a point: its first decision between names (a format, a schedule, a sketch). */
const kindOf = (point: Point): string =>
  `${Object.values(point).find((value) => typeof value === 'string') ?? ''}`

/** Number of kinds with a point that costs little more than the cheapest. */
export function rivals(order: readonly Costed[]): number {
  const minCost = order[0]?.cost ?? 0
  return new Set(order.filter(({ cost }) => cost <= RIVAL_FACTOR * minCost).map(({ point }) => kindOf(point)))
    .size
}

/**
 * The first points of an order by cost, with the n-th point of a kind counted at n times its cost. Costs are times; if
 * the first is not positive, the order is unchanged.
 */
export function varied(order: readonly Costed[], count: number): readonly Point[] {
  if (!((order[0]?.cost ?? 0) > 0)) return order.slice(0, count).map(({ point }) => point)
  const kinds = groupBy(order, ({ point }) => kindOf(point))
  const open = [...kinds.values()].map((of) => ({ of, used: 0 }))
  const selected: Point[] = []
  while (selected.length < count) {
    let best: { readonly kind: (typeof open)[number]; readonly cost: number } | undefined
    for (const kind of open) {
      const cost = (kind.of[kind.used]?.cost ?? Number.NaN) * (kind.used + 1)
      if (Number.isFinite(cost) && !(best && best.cost <= cost)) best = { kind, cost }
    }
    if (!best) break
    selected.push(best.kind.of[best.kind.used++]!.point)
  }
  return selected
}
