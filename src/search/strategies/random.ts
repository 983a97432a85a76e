import { drawing } from '../spaces/point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Point, StrategyFactory } from '../types.ts'
import { StrategyBase } from './strategy-base.ts'

/** Uniformly random points, independent of results: the baseline of the other strategies. */
export const random: StrategyFactory = (space, options) => new RandomSearch(space, options)

class RandomSearch extends StrategyBase {
  readonly name = 'random'

  protected next(): Stepwise<Point | null> {
    return this.unseen.fresh(() => drawing(this.space, this.random))
  }
}
