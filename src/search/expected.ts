/** What a prior expects of points, asked once for each. */
import { fail } from '../ast/diagnostic.ts'
import { pointKey } from './points.ts'
import { atOnce, type Stepwise } from './stepwise.ts'
import type { Point, StrategyOptions } from './types.ts'

type Prior = NonNullable<StrategyOptions['prior']>

/** Milliseconds within which a prior may be asked for more points at once. */
const SHORT = 1

const known = new WeakMap<Prior, Expected>()
const inSteps = new WeakMap<Prior, InSteps>()

/** A prior that takes long. */
export interface InSteps {
  /** What it is asked, with pauses. */
  costs(points: readonly Point[]): Stepwise<readonly number[]>
  /** It will be asked about many points soon. */
  begin(): void
}

/** The prior that does the work at once. */
export function priorOf(work: InSteps): Prior {
  const prior: Prior = (points) => atOnce(work.costs(points))
  inSteps.set(prior, work)
  return prior
}

export class Expected {
  readonly #prior: Prior
  readonly #costs = new Map<string, number>()

  private constructor(prior: Prior) {
    this.#prior = prior
    known.set(this.prior, this)
  }

  /** The one that a prior is of, where it is that of one: nothing is asked or kept twice. */
  static of(prior: Prior): Expected {
    return known.get(prior) ?? new Expected(prior)
  }

  /** It will be asked about many points soon. */
  begin(): void {
    inSteps.get(this.#prior)?.begin()
  }

  /** The same with pauses: of what is not known, the prior is asked for some at a time. @throws SptError `search/prior` */
  *asked(points: readonly Point[]): Stepwise<readonly number[]> {
    const open = points.filter((p) => !this.#costs.has(pointKey(p)))
    const work = inSteps.get(this.#prior)
    if (work) {
      if (open.length > 0) this.#keep(open, yield* work.costs(open))
      return this.prior(points)
    }
    for (let [at, size] = [0, 1]; at < open.length; ) {
      const start = performance.now()
      this.prior(open.slice(at, at + size))
      at += size
      // One that takes long may come after many that do not.
      size = performance.now() - start < SHORT ? 2 * size : 1
      yield
    }
    return this.prior(points)
  }

  /** For strategies; `Infinity` where the prior has no number. @throws SptError `search/prior` */
  readonly prior = (points: readonly Point[]): readonly number[] => {
    const keys = points.map(pointKey)
    const open = points.filter((_, k) => !this.#costs.has(keys[k]!))
    if (open.length > 0) this.#keep(open, this.#prior(open))
    return keys.map((key) => this.#costs.get(key)!)
  }

  #keep(open: readonly Point[], costs: readonly number[]): void {
    if (costs.length !== open.length)
      fail({
        code: 'search/prior',
        message: `the prior has ${costs.length} numbers for ${open.length} points`,
        expected: 'a number for each point',
      })
    for (const [k, point] of open.entries())
      this.#costs.set(pointKey(point), Number.isNaN(costs[k]) ? Number.POSITIVE_INFINITY : costs[k]!)
  }

  /** Nothing is asked for this. */
  known(point: Point): number | undefined {
    const cost = this.#costs.get(pointKey(point))
    return cost !== undefined && Number.isFinite(cost) ? cost : undefined
  }

  /** `undefined`: a step refuses the point. */
  of(point: Point): number | undefined {
    const [cost] = this.prior([point])
    return Number.isFinite(cost) ? cost : undefined
  }
}
