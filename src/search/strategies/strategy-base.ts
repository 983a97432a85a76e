/** Base of the strategies: each point is proposed once; keeps reported trials, the seeded generator and the prior. */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { show } from '../../ast/diagnostics/expect-argument.ts'
import { type Coroutine, runSync } from '../../ast/work.ts'
import { Random as Generator } from '../../run/bind/sources/random-tensors.ts'
import { Expected, RankingTime } from '../ranking/expected.ts'
import { checkSteps, drawSteps, neighbourSteps, pointKey, type Random } from '../spaces/point-walks.ts'
import type { Outcome, Point, PointSpace, Strategy, StrategyOptions, Trial } from '../types.ts'
import { UntakenPoints } from './untaken-points.ts'

export abstract class StrategyBase implements Strategy {
  abstract readonly name: string
  protected readonly random: Random
  protected readonly untaken: UntakenPoints
  protected readonly reported: ReportedTrials
  readonly #expected: Expected | undefined
  readonly #time: RankingTime

  /** @throws SptError `search/seed` */
  constructor(
    protected readonly space: PointSpace,
    { seed, prior, seconds, trials }: StrategyOptions,
  ) {
    if (!Number.isSafeInteger(seed))
      failWith('search/seed', `the seed cannot be ${show(seed)}`, { expected: 'an integer' })
    const generator = new Generator(seed)
    this.random = () => generator.next()
    this.untaken = new UntakenPoints(space, this.random)
    this.reported = new ReportedTrials(space)
    this.#expected = prior && Expected.of(prior)
    this.#time = new RankingTime({ seconds, trials })
  }

  /** The next point, taken from `untaken`; `null` if none is left. */
  protected abstract next(): Coroutine<Point | null>

  /** Learns from the best known outcome of a point. */
  protected learn(_trial: ReportedTrial): void {}

  /** @throws SptError `search/count`, `search/dead-ends`, `search/prior` */
  ask(count: number): readonly Point[] {
    return this.#atOnce(this.askStepwise(count))
  }

  *askStepwise(count: number): Coroutine<readonly Point[]> {
    if (!Number.isSafeInteger(count) || count < 1)
      failWith('search/count', `${show(count)} points cannot be requested`, {
        expected: 'an integer from 1 on',
      })
    const points: Point[] = []
    while (points.length < count) {
      const point = yield* this.next()
      if (!point) break
      points.push(point)
    }
    return points
  }

  tell(trials: readonly Trial[]): void {
    this.#atOnce(this.tellStepwise(trials))
  }

  #atOnce<T>(work: Coroutine<T>): T {
    this.#time.isSynchronous = true
    try {
      return runSync(work)
    } finally {
      this.#time.isSynchronous = false
    }
  }

  *tellStepwise(trials: readonly Trial[]): Coroutine<void> {
    for (const trial of trials) {
      const added = yield* this.reported.add(trial)
      if (!added) continue
      // Trials of earlier searches are reported without having been proposed, and must not be proposed again.
      yield* this.untaken.take(added.point)
      this.learn(added)
    }
  }

  protected get hasPrior(): boolean {
    return this.#expected !== undefined
  }

  /** Predicted costs; `Infinity` without a prediction or time for it. @param share - Fraction of the time left */
  protected *expected(points: readonly Point[], share = 1): Coroutine<readonly number[]> {
    if (!this.#expected) return points.map(() => Number.POSITIVE_INFINITY)
    return yield* this.#expected.costs(points, this.#time, share)
  }

  /** Points that the prior has not ranked, for lack of time. */
  protected unranked(points: readonly Point[]): readonly Point[] {
    return points.filter((p) => this.#expected && !this.#expected.has(p))
  }

  protected get mayRank(): boolean {
    return this.#time.left > 0
  }

  protected *notTaken(points: readonly Point[]): Coroutine<readonly Point[]> {
    const out: Point[] = []
    for (const p of points) if (yield* this.untaken.has(p)) out.push(p)
    return out
  }

  /** Distinct random points; fewer if few are found. */
  protected *drawn(count: number): Coroutine<readonly Point[]> {
    return (yield* this.#drawn(
      count,
      () => drawSteps(this.space, this.random),
      () => true,
    )).points
  }

  /** As `drawn`, within a fraction of the ranking time. `left`: number of points for which there was no time. */
  protected *drawnInTime(
    count: number,
    share: number,
  ): Coroutine<{ readonly points: readonly Point[]; readonly left: number }> {
    const time = this.#time
    const reserve = time.isLimited ? (1 - share) * time.left : Number.NEGATIVE_INFINITY
    const draw = (): Coroutine<Point | null> => time.during(drawSteps(this.space, this.random))
    return yield* this.#drawn(count, draw, (k) => k < MIN_DRAWN || time.left > reserve)
  }

  *#drawn(
    count: number,
    draw: () => Coroutine<Point | null>,
    goesOn: (k: number) => boolean,
  ): Coroutine<{ readonly points: readonly Point[]; readonly left: number }> {
    const out = new Map<string, Point>()
    for (let k = 0; k < count; k++) {
      if (!goesOn(k)) return { points: [...out.values()], left: count - k }
      const point = yield* draw()
      if (!point) break
      out.set(pointKey(point), point)
    }
    return { points: [...out.values()], left: 0 }
  }

  /** Neighbours of a point; empty if there is no time to examine all of them. */
  protected *neighboursInTime(point: Point): Coroutine<readonly Point[]> {
    return (this.mayRank && (yield* this.#time.within(neighbourSteps(this.space, point)))) || []
  }

  /** The point with the least predicted cost; without a prior the first. */
  protected *likeliest(points: readonly Point[]): Coroutine<Point | null> {
    if (!this.hasPrior || points.length < 2) return points[0] ?? null
    const expected = yield* this.expected(points)
    return points[expected.indexOf(Math.min(...expected))] ?? points[0]!
  }

  /** A point that was not taken: of `count` random ones, the one with the least predicted cost. */
  protected likelyOf(count: number): Coroutine<Point | null> {
    return this.untaken.fresh(() => this.#likeliestDrawn(count))
  }

  *#likeliestDrawn(count: number): Coroutine<Point | null> {
    return yield* this.likeliest(yield* this.notTaken(yield* this.drawn(count)))
  }

  /** The point with the least used values among a few random ones, so that each value is tried early. */
  protected *spread(): Coroutine<Point | null> {
    const uses = new Map<string, number>()
    for (const { point } of this.reported.all())
      for (const entry of Object.entries(point)) {
        const key = JSON.stringify(entry)
        uses.set(key, (uses.get(key) ?? 0) + 1)
      }
    const rarity = (point: Point): number => {
      const entries = Object.entries(point)
      const parts = entries.map((e) => 1 / (1 + (uses.get(JSON.stringify(e)) ?? 0)))
      return parts.reduce((a, b) => a + b, 0) / Math.max(1, entries.length)
    }
    return yield* this.untaken.fresh(() => this.#rarestDrawn(rarity))
  }

  *#rarestDrawn(rarity: (point: Point) => number): Coroutine<Point | null> {
    const drawn = yield* this.drawn(SPREAD_CANDIDATES)
    const rarities = drawn.map(rarity)
    return drawn[rarities.indexOf(Math.max(...rarities))] ?? null
  }
}

const SPREAD_CANDIDATES = 16
/** Number of points that are drawn regardless of time. */
const MIN_DRAWN = 32

// Trials reported to a strategy: the best outcome of each point.

export interface ReportedTrial {
  readonly point: Point
  /** Milliseconds; `null` for an unusable outcome. */
  readonly ms: number | null
  /** Fraction of a full measurement. */
  readonly share: number
}

/** Lower bound of times, below the resolution of clocks, so that logarithms exist. */
const LEAST_MS = 1e-9

class ReportedTrials {
  readonly #byKey = new Map<string, ReportedTrial>()
  readonly #wrong = new Set<string>()
  /** Incremented with every change of the known trials. */
  version = 0

  constructor(private readonly space: PointSpace) {}

  /** Adds a trial; returns its point with ordered decisions, or `null` if it is not in the space. */
  *add({ point, outcome, share = 1 }: Trial): Coroutine<ReportedTrial | null> {
    const checked = yield* this.#own(point)
    if (!checked) return null
    const key = pointKey(checked)
    if (outcome.status === 'wrong') this.#wrong.add(key)
    const known = this.#byKey.get(key)
    const trial = { point: checked, ms: this.#wrong.has(key) ? null : millisecondsOf(outcome), share }
    // A measurement replaces earlier ones of at most equal effort; a wrong result is final.
    if (!known || trial.ms === null || (known.ms !== null && known.share <= share)) {
      this.#byKey.set(key, trial)
      this.version++
    }
    return trial
  }

  *#own(point: Point): Coroutine<Point | null> {
    try {
      return yield* checkSteps(this.space, point)
    } catch (e) {
      if (e instanceof SptError) return null
      throw e
    }
  }

  get size(): number {
    return this.#byKey.size
  }

  all(): readonly ReportedTrial[] {
    return [...this.#byKey.values()]
  }

  /** Fastest first. */
  measured(): readonly (ReportedTrial & { readonly ms: number })[] {
    return this.all()
      .filter((t): t is ReportedTrial & { readonly ms: number } => t.ms !== null)
      .sort((a, b) => a.ms - b.ms)
  }
}

function millisecondsOf(outcome: Outcome): number | null {
  if (outcome.status !== 'measured') return null
  const { median } = outcome.timing
  return Number.isFinite(median) && median >= 0 ? Math.max(median, LEAST_MS) : null
}
