import type { Stepwise } from '../stepwise.ts'
import type { Point, StrategyOf } from '../types.ts'
import { ForestSearch } from './forest-search.ts'

/**
 * A random forest learns log times, another which points are refused; what is asked next has the greatest expected
 * improvement (as SMAC: Hutter et al., 2011). A prior is one column more, and what is asked first.
 */
export const surrogate: StrategyOf = (space, options) => new Surrogate(space, options)

class Surrogate extends ForestSearch {
  readonly name = 'surrogate'
  protected readonly initialPoints = 10

  protected initial(): Stepwise<Point | null> {
    return this.hasPrior ? this.likelyOf(32) : this.spread()
  }
}
