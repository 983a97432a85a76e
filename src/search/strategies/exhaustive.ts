import { BARREN, effortOf } from '../loop/effort.ts'
import { drawing, foundIn } from '../spaces/point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { OpenDecision, Point, PointSpace, StrategyFactory, StrategyOptions } from '../types.ts'
import { StrategyBase } from './strategy-base.ts'
import { failDeadEnds } from './untaken-points.ts'

/** Number of points that are sorted by the prior at a time, so that a search starts without enumerating the space. */
const CHUNK = 1024

/** Every point once, in the order of the values; with a prior, the best expected of the next thousand first. */
export const exhaustive: StrategyFactory = (space, options) => new Exhaustive(space, options)

class Exhaustive extends StrategyBase {
  readonly name = 'exhaustive'
  readonly #points: Generator<Point | undefined>
  #chunk: Point[] = []
  #barren = 0

  constructor(space: PointSpace, options: StrategyOptions) {
    super(space, options)
    this.#points = foundIn({ name: space.name, next: (partial) => this.#open(partial) })
  }

  #open(partial: Point): OpenDecision | null {
    if (this.#barren > BARREN) failDeadEnds(this.space)
    const decision = this.space.next(partial)
    this.#barren += effortOf(decision)
    return decision
  }

  protected *next(): Stepwise<Point | null> {
    for (;;) {
      if (this.#chunk.length === 0) yield* this.#fill()
      const point = this.#chunk.shift()
      if (!point) return null
      const taken = yield* this.unseen.take(point)
      if (taken) return taken
    }
  }

  *#fill(): Stepwise<void> {
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
export const random: StrategyFactory = (space, options) => new RandomSearch(space, options)

class RandomSearch extends StrategyBase {
  readonly name = 'random'

  protected next(): Stepwise<Point | null> {
    return this.unseen.fresh(() => drawing(this.space, this.random))
  }
}
