import { crossing, mutating, neighbouring } from '../point-walks.ts'
import { eachOf, type Stepwise } from '../stepwise.ts'
import type { Point, StrategyFactory } from '../types.ts'
import type { Told } from './known-trials.ts'
import { StrategyBase } from './strategy-base.ts'

/** Points that have children: the last so many that could be measured. */
const POPULATION = 20
/** Tournament size of the selection of parents. */
const TOURNAMENT = 6
const INITIAL = 12
/** Children that the prior chooses among. */
const LITTER = 6
const CROSSOVER = 0.25
const STEP = 0.5

/**
 * Regularised evolution (Real et al., 2019): the oldest die, not the slowest, so that a lucky measurement does not stay.
 * Children change a decision, by the least that it can be or anything else, or mix two parents.
 */
export const evolutionary: StrategyFactory = (space, options) => new Evolutionary(space, options)

class Evolutionary extends StrategyBase {
  readonly name = 'evolutionary'
  /** Oldest first. */
  readonly #population: (Told & { readonly ms: number })[] = []

  protected override learn({ point, ms, share }: Told): void {
    // What is refused has no children.
    if (ms === null) return
    this.#population.push({ point, ms, share })
    if (this.#population.length > POPULATION) this.#population.shift()
  }

  protected next(): Stepwise<Point | null> {
    if (this.#population.length === 0 || this.told.size < INITIAL)
      return this.hasPrior ? this.unseen.fresh(() => this.#first()) : this.spread()
    return this.unseen.fresh(() => this.#best())
  }

  *#first(): Stepwise<Point | null> {
    return yield* this.likeliest(yield* this.notTaken(yield* this.drawn(64)))
  }

  *#best(): Stepwise<Point | null> {
    const litter = yield* eachOf(Array(this.hasPrior ? LITTER : 1).keys(), () => this.#child())
    return yield* this.likeliest(yield* this.notTaken(litter.filter((p) => p !== null)))
  }

  *#child(): Stepwise<Point | null> {
    const parent = this.#parent()
    if (this.random() < CROSSOVER) {
      const child = yield* crossing(this.space, parent, this.#parent(), this.random)
      if (child && (yield* this.unseen.has(child))) return child
    }
    if (this.random() < STEP) {
      const near = yield* this.notTaken(yield* neighbouring(this.space, parent))
      if (near.length > 0) return near[Math.floor(this.random() * near.length)]!
    }
    return yield* mutating(this.space, parent, this.random)
  }

  #parent(): Point {
    const of = Array.from(
      { length: TOURNAMENT },
      () => this.#population[Math.floor(this.random() * this.#population.length)]!,
    )
    return of.reduce((a, b) => (b.ms < a.ms ? b : a)).point
  }
}
