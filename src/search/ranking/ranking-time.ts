/** Time budget of the prior: a fraction of the time of the trials, so that the first trial starts soon. */
import type { Stepwise } from '../stepwise.ts'
import type { StrategyOptions } from '../types.ts'

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
  #spent = 0

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
    return Math.max(this.#first, SHARE * (this.#now() - this.#start)) - this.#spent
  }

  /** Does some of the work that it is for, and gives the milliseconds that it took. */
  spend(work: () => void): number {
    const start = this.#now()
    try {
      work()
    } finally {
      this.#spent += this.#now() - start
    }
    return this.#now() - start
  }

  /** Runs the work with pauses. @returns `null` if the time for ranking ended first */
  within<T>(work: Stepwise<T>): Stepwise<T | null> {
    return this.#stepped(work, () => this.left)
  }

  /** Runs the work with pauses and without a limit; its time counts. */
  during<T>(work: Stepwise<T>): Stepwise<T> {
    return this.#stepped(work, () => Number.POSITIVE_INFINITY) as Stepwise<T>
  }

  *#stepped<T>(work: Stepwise<T>, most: () => number): Stepwise<T | null> {
    const start = this.#now()
    try {
      for (;;) {
        const step = work.next()
        if (step.done) return step.value
        if (this.#now() - start >= most()) return null
        yield
      }
    } finally {
      work.return(undefined as never)
      this.#spent += this.#now() - start
    }
  }
}
