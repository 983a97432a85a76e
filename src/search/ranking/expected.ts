/** Caches the prior's predictions by point. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { show } from '../../ast/diagnostics/expect-argument.ts'
import type { Coroutine } from '../../ast/work.ts'
import { goldenSequence } from '../../run/bind/sources/random-tensors.ts'
import { pointKey } from '../spaces/points.ts'
import type { Point, StrategyOptions } from '../types.ts'

// Time budget of the prior: a fraction of the time of the trials, so that the first trial starts soon.

/** Maximum seconds before the first trial; later ranking is interleaved with trials. */
const FIRST = 1.5
/** Share of the elapsed time, initially of the total. */
const SHARE = 1 / 4
/** Seconds that a trial takes at least: it is lowered, compared and measured. */
const TRIAL = 0.2

type Limits = Pick<StrategyOptions, 'seconds' | 'trials'>

export class RankingTime {
  readonly #first: number
  readonly #now: () => number
  readonly #start: number
  /** Milliseconds spent so far. */
  spent = 0
  /** True in calls that cannot wait for other threads. */
  isSynchronous = false

  /**
   * @param limits of the search; without any, ranking is unlimited
   * @param now milliseconds
   */
  constructor({ seconds, trials }: Limits, now: () => number = () => performance.now()) {
    this.#now = now
    this.#start = now()
    const least = Math.min(seconds ?? Number.POSITIVE_INFINITY, TRIAL * (trials ?? Number.POSITIVE_INFINITY))
    this.#first = Number.isFinite(least) ? 1000 * Math.min(FIRST, SHARE * least) : Number.POSITIVE_INFINITY
  }

  get isLimited(): boolean {
    return Number.isFinite(this.#first)
  }

  /** Milliseconds that are left at the moment. */
  get left(): number {
    return Math.max(this.#first, SHARE * (this.#now() - this.#start)) - this.spent
  }

  /** Runs the work with pauses. @returns `null` if the time for ranking ended first */
  within<T>(work: Coroutine<T>): Coroutine<T | null> {
    return this.#stepped(work, () => this.left)
  }

  /** Runs the work with pauses and without a limit; its time counts. */
  during<T>(work: Coroutine<T>): Coroutine<T> {
    return this.#stepped(work, () => Number.POSITIVE_INFINITY) as Coroutine<T>
  }

  *#stepped<T>(work: Coroutine<T>, most: () => number): Coroutine<T | null> {
    const start = this.#now()
    try {
      for (;;) {
        const step = work.next()
        if (step.done) return step.value
        if (this.#now() - start >= most()) return null
        yield step.value
      }
    } finally {
      work.return(undefined as never)
      this.spent += this.#now() - start
    }
  }
}

type Prior = NonNullable<StrategyOptions['prior']>

/** Milliseconds below which a prior without pauses evaluates twice as many points next. */
const SHORT = 1

/** Points that a prior with pauses ranks even without time, because on a busy machine it would rank none. */
const LEAST_RANKED = 32

const instances = new WeakMap<Prior, Expected>()
const stepwisePriors = new WeakMap<Prior, InSteps>()

/** A prior that takes long. */
interface InSteps {
  /** Points evaluated together if time is limited. */
  readonly together: number
  /** Predicted costs, with pauses, in several threads. */
  costs(points: readonly Point[]): Coroutine<readonly number[]>
  /** Announces that many points will be evaluated soon. */
  begin(): void
}

/** A prior that does the work at once, in this thread, where it cannot wait. */
export function priorOf(cost: (point: Point) => number, work: InSteps): Prior {
  const prior: Prior = (points) => points.map(cost)
  stepwisePriors.set(prior, work)
  return prior
}

export class Expected {
  readonly #prior: Prior
  readonly #costs = new Map<string, number>()
  /** Called with the number of points evaluated so far. */
  onRanked: ((count: number) => void) | undefined

  private constructor(prior: Prior) {
    this.#prior = prior
    instances.set(this.prior, this)
  }

  /** The cache of a prior; a prior that already wraps a cache returns it. */
  static of(prior: Prior): Expected {
    return instances.get(prior) ?? new Expected(prior)
  }

  begin(): void {
    stepwisePriors.get(this.#prior)?.begin()
  }

  /**
   * Cached costs with pauses: the prior evaluates unknown points in batches while there is time; the remaining ones have no
   * prediction yet.
   * @param share of the time that is left
   * @throws SptError `search/prior`
   */
  *costs(points: readonly Point[], time: RankingTime, share = 1): Coroutine<readonly number[]> {
    const unranked = points.filter((p) => !this.#costs.has(pointKey(p)))
    const queue = time.isLimited ? scattered(unranked) : unranked
    const reservedTime = time.isLimited ? (1 - share) * time.left : Number.NEGATIVE_INFINITY
    const work = stepwisePriors.get(this.#prior)
    const isDue = (): boolean =>
      time.left > reservedTime || (work !== undefined && this.#costs.size < LEAST_RANKED)
    const usualSize = work ? (time.isLimited ? work.together : queue.length) : 1
    for (let [start, size] = [0, usualSize]; start < queue.length && isDue(); ) {
      const batch = queue.slice(start, start + size)
      start += size
      const { spent } = time
      yield* time.during(this.#rank(batch, time.isSynchronous ? undefined : work))
      // A batch that takes long may follow many that do not.
      size = !work && time.spent - spent < SHORT ? 2 * size : usualSize
      // Outside of the time for ranking, because other work may run here.
      yield
    }
    return points.map((p) => this.#costs.get(pointKey(p)) ?? Number.POSITIVE_INFINITY)
  }

  *#rank(points: readonly Point[], work: InSteps | undefined): Coroutine<void> {
    if (work) this.#keep(points, yield* work.costs(points))
    else this.prior(points)
  }

  /** Predicted costs; `Infinity` for points predicted to be rejected. @throws SptError `search/prior` */
  readonly prior = (points: readonly Point[]): readonly number[] => {
    const keys = points.map(pointKey)
    const unranked = points.filter((_, k) => !this.#costs.has(keys[k]!))
    if (unranked.length > 0) this.#keep(unranked, this.#prior(unranked))
    return keys.map((key) => this.#costs.get(key)!)
  }

  #keep(unranked: readonly Point[], costs: readonly number[]): void {
    const count: unknown = costs?.length
    if (count !== unranked.length)
      refuse(
        typeof count === 'number'
          ? `the prior has ${count} numbers for ${unranked.length} points`
          : `the prior gives ${show(costs)} for ${unranked.length} points`,
      )
    for (const [k, point] of unranked.entries()) {
      const cost: unknown = costs[k]
      if (typeof cost !== 'number' || Number.isNaN(cost))
        refuse(`the prior gives ${show(cost)} for ${JSON.stringify(point)}`)
    }
    for (const [k, point] of unranked.entries()) this.#costs.set(pointKey(point), costs[k]!)
    this.onRanked?.(this.#costs.size)
  }

  has(point: Point): boolean {
    return this.#costs.has(pointKey(point))
  }

  /** The cached cost, without evaluating the prior. */
  known(point: Point): number | undefined {
    const cost = this.#costs.get(pointKey(point))
    return cost !== undefined && Number.isFinite(cost) ? cost : undefined
  }

  /** `undefined`: a step rejects the point. */
  of(point: Point): number | undefined {
    const [cost] = this.prior([point])
    return Number.isFinite(cost) ? cost : undefined
  }
}

/** A permutation whose prefixes are spread evenly over the list. */
function scattered<T>(list: readonly T[]): readonly T[] {
  const place = (k: number): number => goldenSequence(k + 1)
  return [...list.keys()].sort((a, b) => place(a) - place(b)).map((k) => list[k]!)
}

const refuse = (message: string): never =>
  failWith('search/prior', message, {
    expected: 'a number for each point',
    hint: 'use Infinity for rejected or unknown points, which come last',
  })
