import type { Stepwise } from '../stepwise.ts'
import type { Point, StrategyFactory } from '../types.ts'
import { ForestSearch } from './forest-search.ts'

/**
 * Random-forest surrogate: one forest predicts log times, another the probability of rejection; proposes the greatest
 * expected improvement (as SMAC: Hutter et al., 2011). A prior is an additional feature, and ranks the first points.
 */
export const surrogate: StrategyFactory = (space, options) => new Surrogate(space, options)

class Surrogate extends ForestSearch {
  readonly name = 'surrogate'
  protected readonly initialPoints = 10

  protected initial(): Stepwise<Point | null> {
    return this.hasPrior ? this.likelyOf(32) : this.spread()
  }
}
