import { crossing, mutating, neighbouring } from '../spaces/point-walks.ts'
import { eachOf, type Stepwise } from '../stepwise.ts'
import type { Point, StrategyFactory } from '../types.ts'
import { StrategyBase, type Told } from './strategy-base.ts'

/** Number of most recent measured points from which parents are selected. */
const POPULATION = 20
/** Tournament size of the selection of parents. */
const TOURNAMENT = 6
const INITIAL = 12
/** Number of children among which the prior selects. */
const CHILDREN = 6
const CROSSOVER = 0.25
const STEP = 0.5

/**
 * Regularised evolution (Real et al., 2019): the oldest points are removed, not the slowest, so that a lucky
 * measurement does not persist. Children change one decision, by one step or arbitrarily, or combine two parents.
 */
export const evolutionary: StrategyFactory = (space, options) => new Evolutionary(space, options)

class Evolutionary extends StrategyBase {
  readonly name = 'evolutionary'
  /** Oldest first. */
  readonly #population: (Told & { readonly ms: number })[] = []

  protected override learn({ point, ms, share }: Told): void {
    // Rejected points have no children.
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
    const children = yield* eachOf(Array(this.hasPrior ? CHILDREN : 1).keys(), () => this.#child())
    return yield* this.likeliest(yield* this.notTaken(children.filter((p) => p !== null)))
  }

  *#child(): Stepwise<Point | null> {
    const parent = this.#parent()
    if (this.random() < CROSSOVER) {
      const child = yield* crossing(this.space, parent, this.#parent(), this.random)
      if (child && (yield* this.unseen.has(child))) return child
    }
    if (this.random() < STEP) {
      const neighbours = yield* this.notTaken(yield* neighbouring(this.space, parent))
      if (neighbours.length > 0) return neighbours[Math.floor(this.random() * neighbours.length)]!
    }
    return yield* mutating(this.space, parent, this.random)
  }

  #parent(): Point {
    const contestants = Array.from(
      { length: TOURNAMENT },
      () => this.#population[Math.floor(this.random() * this.#population.length)]!,
    )
    return contestants.reduce((a, b) => (b.ms < a.ms ? b : a)).point
  }
}
