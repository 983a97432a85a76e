/** Base of the strategies: each point is proposed once; keeps reported trials, the seeded generator and the prior. */
import { fail } from '../../ast/diagnostic.ts'
import { show } from '../../ast/expect-argument.ts'
import { Random as Generator } from '../../run/bind/random-tensors.ts'
import { Expected } from '../expected.ts'
import { drawing, neighbouring, pointKey, type Random } from '../point-walks.ts'
import { RankingTime } from '../ranking-time.ts'
import { atOnce, type Stepwise } from '../stepwise.ts'
import type { Point, PointSpace, Strategy, StrategyOptions, Trial } from '../types.ts'
import { type Told, ToldPoints } from './known-trials.ts'
import { Unseen } from './untaken-points.ts'

export abstract class StrategyBase implements Strategy {
  abstract readonly name: string
  protected readonly space: PointSpace
  protected readonly random: Random
  protected readonly unseen: Unseen
  protected readonly told: ToldPoints
  readonly #expected: Expected | undefined
  readonly #time: RankingTime

  /** @throws SptError `search/seed` */
  constructor(space: PointSpace, { seed, prior, seconds, trials }: StrategyOptions) {
    if (!Number.isSafeInteger(seed))
      fail({ code: 'search/seed', message: `the seed cannot be ${show(seed)}`, expected: 'an integer' })
    const generator = new Generator(seed)
    this.space = space
    this.random = () => generator.next()
    this.unseen = new Unseen(space, this.random)
    this.told = new ToldPoints(space)
    this.#expected = prior && Expected.of(prior)
    this.#time = new RankingTime({ seconds, trials })
  }

  /** The next point, taken from `unseen`; `null` if none is left. */
  protected abstract next(): Stepwise<Point | null>

  /** Learns from the best known outcome of a point. */
  protected learn(_told: Told): void {}

  /** @throws SptError `search/count`, `search/dead-ends`, `search/prior` */
  ask(count: number): readonly Point[] {
    return atOnce(this.askStepwise(count))
  }

  *askStepwise(count: number): Stepwise<readonly Point[]> {
    if (!Number.isSafeInteger(count) || count < 1)
      fail({
        code: 'search/count',
        message: `${show(count)} points cannot be requested`,
        expected: 'an integer from 1 on',
      })
    const out: Point[] = []
    while (out.length < count) {
      const point = yield* this.next()
      if (!point) break
      out.push(point)
    }
    return out
  }

  tell(trials: readonly Trial[]): void {
    atOnce(this.tellStepwise(trials))
  }

  *tellStepwise(trials: readonly Trial[]): Stepwise<void> {
    for (const trial of trials) {
      const told = yield* this.told.add(trial)
      if (!told) continue
      // Told without having been asked, of an earlier search: not to be asked again.
      yield* this.unseen.take(told.point)
      this.learn(told)
    }
  }

  protected get hasPrior(): boolean {
    return this.#expected !== undefined
  }

  /**
   * Costs of points predicted by the prior; `Infinity` without a prediction, a prior, or time for it.
   * @param share of the time that is left
   */
  protected *expected(points: readonly Point[], share = 1): Stepwise<readonly number[]> {
    if (!this.#expected) return points.map(() => Number.POSITIVE_INFINITY)
    return yield* this.#expected.asked(points, this.#time, share)
  }

  /** Those that the prior was not asked about, for want of time. */
  protected unranked(points: readonly Point[]): readonly Point[] {
    return points.filter((p) => this.#expected && !this.#expected.has(p))
  }

  /** True if there is time left to evaluate the prior. */
  protected get mayRank(): boolean {
    return this.#time.left > 0
  }

  /** Those that were not taken. */
  protected *notTaken(points: readonly Point[]): Stepwise<readonly Point[]> {
    const out: Point[] = []
    for (const p of points) if (yield* this.unseen.has(p)) out.push(p)
    return out
  }

  /** Whole points at random, different ones; fewer where few are found. */
  protected *drawn(count: number): Stepwise<readonly Point[]> {
    const out = new Map<string, Point>()
    for (let k = 0; k < count; k++) {
      const point = yield* drawing(this.space, this.random)
      if (!point) break
      out.set(pointKey(point), point)
    }
    return [...out.values()]
  }

  /** The same as long as there is time for ranking, of which it takes a share; `left`: how many there was no time for. */
  protected *drawnInTime(
    count: number,
    share: number,
  ): Stepwise<{ readonly points: readonly Point[]; readonly left: number }> {
    const time = this.#time
    const least = time.isLimited ? (1 - share) * time.left : Number.NEGATIVE_INFINITY
    const out = new Map<string, Point>()
    for (let k = 0; k < count; k++) {
      if (k >= LEAST_DRAWN && time.left <= least) return { points: [...out.values()], left: count - k }
      const point = yield* time.during(drawing(this.space, this.random))
      if (!point) break
      out.set(pointKey(point), point)
    }
    return { points: [...out.values()], left: 0 }
  }

  /** Its neighbours; none if there is no time to look at all of them. */
  protected *neighboursInTime(point: Point): Stepwise<readonly Point[]> {
    return (this.mayRank && (yield* this.#time.within(neighbouring(this.space, point)))) || []
  }

  /** The one of which the prior expects least; the first where there is none. */
  protected *likeliest(points: readonly Point[]): Stepwise<Point | null> {
    if (!this.hasPrior || points.length < 2) return points[0] ?? null
    const expected = yield* this.expected(points)
    return points[expected.indexOf(Math.min(...expected))] ?? points[0]!
  }

  /** One that was not taken: of some at random, the one of which the prior expects least. */
  protected likelyOf(count: number): Stepwise<Point | null> {
    const propose = this.#likelyOf.bind(this)
    return this.unseen.fresh(() => propose(count))
  }

  *#likelyOf(count: number): Stepwise<Point | null> {
    return yield* this.likeliest(yield* this.drawn(count))
  }

  /**
   * A point whose values were decided seldom so far: of a few at random, so that each value of each decision is soon seen.
   */
  protected *spread(): Stepwise<Point | null> {
    const uses = new Map<string, number>()
    for (const { point } of this.told.all())
      for (const entry of Object.entries(point)) {
        const key = JSON.stringify(entry)
        uses.set(key, (uses.get(key) ?? 0) + 1)
      }
    const rarity = (point: Point): number => {
      const entries = Object.entries(point)
      const parts = entries.map((e) => 1 / (1 + (uses.get(JSON.stringify(e)) ?? 0)))
      return parts.reduce((a, b) => a + b, 0) / Math.max(1, entries.length)
    }
    const { unseen } = this
    const drawn = (): Stepwise<readonly Point[]> => this.drawn(SPREAD)
    return yield* unseen.fresh(function* () {
      const some = yield* drawn()
      const rare = some.map(rarity)
      return some[rare.indexOf(Math.max(...rare))] ?? null
    })
  }
}

const SPREAD = 16
/** Points that are drawn whatever time it takes. */
const LEAST_DRAWN = 32
