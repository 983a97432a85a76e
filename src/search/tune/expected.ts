/** What a prior expects of points, asked once for each. */
import { pointKey } from '../points.ts'
import type { Point, StrategyOptions } from '../types.ts'

export class Expected {
  readonly #prior: NonNullable<StrategyOptions['prior']>
  readonly #known = new Map<string, number>()

  constructor(prior: NonNullable<StrategyOptions['prior']>) {
    this.#prior = prior
  }

  /** For strategies. */
  readonly prior = (points: readonly Point[]): readonly number[] => {
    const keys = points.map(pointKey)
    const open = points.filter((_, k) => !this.#known.has(keys[k]!))
    const costs = open.length > 0 ? this.#prior(open) : []
    for (const [k, point] of open.entries()) this.#known.set(pointKey(point), costs[k]!)
    return keys.map((key) => this.#known.get(key)!)
  }

  /** `undefined`: a step refuses the point. */
  of(point: Point): number | undefined {
    const [cost] = this.prior([point])
    return Number.isFinite(cost) ? cost : undefined
  }
}
