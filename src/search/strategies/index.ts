/** Strategies by name. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import type { Coroutine } from '../../ast/work.ts'
import { BARREN, effortOf } from '../spaces/counter.ts'
import {
  crossoverSteps,
  drawSteps,
  mutateSteps,
  neighbourSteps,
  pointKey,
  walkPoints,
} from '../spaces/point-walks.ts'
import type { OpenDecision, Point, PointSpace, StrategyFactory, StrategyOptions } from '../types.ts'
import { Surrogate } from './forest-search.ts'
import { ModelSearch } from './model.ts'
import { type ReportedTrial, StrategyBase } from './strategy-base.ts'
import { failDeadEnds } from './untaken-points.ts'

export const STRATEGIES: Readonly<Record<string, StrategyFactory>> = {
  exhaustive: (space, options) => new Exhaustive(space, options),
  random: (space, options) => new RandomSearch(space, options),
  evolutionary: (space, options) => new Evolutionary(space, options),
  surrogate: (space, options) => new Surrogate(space, options),
  halving: (space, options) => new Halving(space, options),
  model: (space, options) => new ModelSearch(space, options),
}

/** @throws SptError `search/strategy` */
export function strategyNamed(name: string): StrategyFactory {
  const found = Object.hasOwn(STRATEGIES, name) ? STRATEGIES[name] : undefined
  if (found) return found
  const candidates = Object.keys(STRATEGIES)
  return failWith('search/strategy', `there is no strategy ${nameText(name)}`, {
    lookup: { name: nameText(name), candidates },
    expected: `one of ${candidates.join(', ')}`,
  })
}

/** Number of most recent measured points from which parents are selected. */
const POPULATION = 20
/** Tournament size of the selection of parents. */
const TOURNAMENT = 6
const INITIAL = 12
/** Number of random points among which the prior selects one of these. */
const FIRST_DRAWN = 64
/** Number of children among which the prior selects. */
const CHILDREN = 6
const CROSSOVER = 0.25
const STEP = 0.5

/**
 * Regularised evolution (Real et al., 2019): the oldest points are removed, not the slowest, so that a lucky
 * measurement does not persist. Children change one decision, by one step or arbitrarily, or combine two parents.
 */
class Evolutionary extends StrategyBase {
  readonly name = 'evolutionary'
  readonly #population: (ReportedTrial & { readonly ms: number })[] = []

  protected override learn({ point, ms, share }: ReportedTrial): void {
    // Rejected points have no children.
    if (ms === null) return
    this.#population.push({ point, ms, share })
    if (this.#population.length > POPULATION) this.#population.shift()
  }

  protected next(): Coroutine<Point | null> {
    if (this.#population.length === 0 || this.reported.size < INITIAL)
      return this.hasPrior ? this.likelyOf(FIRST_DRAWN) : this.spread()
    return this.untaken.fresh(() => this.#best())
  }

  *#best(): Coroutine<Point | null> {
    const children: (Point | null)[] = []
    for (let k = 0; k < (this.hasPrior ? CHILDREN : 1); k++) children.push(yield* this.#child())
    return yield* this.likeliest(yield* this.notTaken(children.filter((p) => p !== null)))
  }

  *#child(): Coroutine<Point | null> {
    const parent = this.#parent()
    if (this.random() < CROSSOVER) {
      const child = yield* crossoverSteps(this.space, parent, this.#parent(), this.random)
      if (child && (yield* this.untaken.has(child))) return child
    }
    if (this.random() < STEP) {
      const neighbours = yield* this.notTaken(yield* neighbourSteps(this.space, parent))
      if (neighbours.length > 0) return neighbours[Math.floor(this.random() * neighbours.length)]!
    }
    return yield* mutateSteps(this.space, parent, this.random)
  }

  #parent(): Point {
    const contestants = Array.from(
      { length: TOURNAMENT },
      () => this.#population[Math.floor(this.random() * this.#population.length)]!,
    )
    return contestants.reduce((a, b) => (b.ms < a.ms ? b : a)).point
  }
}

/** Number of points that are sorted by the prior at a time, so that a search starts without enumerating the space. */
const CHUNK = 1024

/** Every point once, in the order of the values; with a prior, the best expected of the next thousand first. */
class Exhaustive extends StrategyBase {
  readonly name = 'exhaustive'
  readonly #points: Generator<Point | undefined>
  #chunk: Point[] = []
  #barren = 0

  constructor(space: PointSpace, options: StrategyOptions) {
    super(space, options)
    this.#points = walkPoints({ name: space.name, next: (partial) => this.#open(partial) })
  }

  #open(partial: Point): OpenDecision | null {
    if (this.#barren > BARREN) failDeadEnds(this.space)
    const decision = this.space.next(partial)
    this.#barren += effortOf(decision)
    return decision
  }

  protected *next(): Coroutine<Point | null> {
    for (;;) {
      if (this.#chunk.length === 0) yield* this.#fill()
      const point = this.#chunk.shift()
      if (!point) return null
      const taken = yield* this.untaken.take(point)
      if (taken) return taken
    }
  }

  *#fill(): Coroutine<void> {
    const size = this.hasPrior ? CHUNK : 1
    const chunk: Point[] = []
    while (chunk.length < size) {
      const { value, done } = this.#points.next()
      if (done) break
      if (!value) {
        yield
        continue
      }
      this.#barren = 0
      chunk.push(value)
    }
    if (this.hasPrior) {
      const expected = yield* this.expected(chunk)
      const order = chunk.map((_, k) => k).sort((a, b) => expected[a]! - expected[b]!)
      this.#chunk = order.map((k) => chunk[k]!)
    } else this.#chunk = chunk
  }
}

/** Uniformly random points, independent of results: the baseline of the other strategies. */
class RandomSearch extends StrategyBase {
  readonly name = 'random'

  protected next(): Coroutine<Point | null> {
    return this.untaken.fresh(() => drawSteps(this.space, this.random))
  }
}

/** Share of a measurement on each rung (successive halving). */
const SHARES = [1 / 4, 1 / 2, 1] as const
/** Reduction factor: the fastest of this many points advances to the next rung. */
const ETA = 2
/** Number of random points among which the prior selects. */
const CANDIDATES = 16

/**
 * Asynchronous successive halving (Li et al., 2020): many points get a short measurement, the fastest half of them a
 * longer one, and so on. Worthwhile if measuring dominates the time of a search.
 */
class Halving extends StrategyBase {
  readonly name = 'halving'
  /** Measured points by rung. */
  readonly #rungs = SHARES.map(() => new Map<string, ReportedTrial & { readonly ms: number }>())
  readonly #promoted = SHARES.map(() => new Set<string>())
  readonly #shares = new Map<string, number>()

  share(point: Point): number {
    return this.#shares.get(pointKey(point)) ?? SHARES[0]
  }

  protected override learn({ point, ms, share }: ReportedTrial): void {
    const key = pointKey(point)
    // Points that are rejected, or wrong in a longer measurement, leave all rungs.
    for (const rung of this.#rungs) if (ms === null) rung.delete(key)
    if (ms === null) return
    const rung = SHARES.findLastIndex((s) => s <= share + 1e-9)
    this.#rungs[Math.max(0, rung)]!.set(key, { point, ms, share })
  }

  protected *next(): Coroutine<Point | null> {
    const promoted = this.#promote(ETA)
    if (promoted) return promoted
    const fresh = yield* this.hasPrior
      ? this.likelyOf(CANDIDATES)
      : this.untaken.fresh(() => drawSteps(this.space, this.random))
    // Without new points, the remaining ones complete their measurements, the fastest first.
    return fresh ?? this.#promote(1)
  }

  /** The fastest point not yet promoted, of the highest rung in which it is among the first 1/eta. */
  #promote(eta: number): Point | null {
    for (let rung = SHARES.length - 2; rung >= 0; rung--) {
      const [rungPoints, promoted] = [this.#rungs[rung]!, this.#promoted[rung]!]
      const leading = [...rungPoints]
        .sort(([, a], [, b]) => a.ms - b.ms)
        .slice(0, Math.floor(rungPoints.size / eta))
      const next = leading.find(([key]) => !promoted.has(key))
      if (!next) continue
      const [key, { point }] = next
      promoted.add(key)
      this.#shares.set(key, SHARES[rung + 1]!)
      return point
    }
    return null
  }
}
