/**
 * Search loop: a strategy proposes points, they are evaluated and reported back, until a budget is spent or nothing better is
 * found.
 */
import { fail } from '../ast/diagnostic.ts'
import { Ending } from './ending.ts'
import { properOutcomes } from './outcome-checks.ts'
import { counting } from './point-walks.ts'
import { LIST_LIMIT } from './points.ts'
import { checkOptions, type EvaluationRequest, NONE, type SearchOptions } from './search-options.ts'
import { inTurns, type Stepwise } from './stepwise.ts'
import { strategyNamed } from './strategies/index.ts'
import { AskedPoints, properStrategy } from './strategy-checks.ts'
import { type SearchTally, Tally, type WrongResult } from './tally.ts'
import type { Outcome, Strategy, Trial } from './types.ts'

export type StopReason =
  | 'trials'
  | 'seconds'
  | 'patience'
  /** No point is left. */
  | 'exhausted'
  /** The strategy stopped proposing, although points may be left. */
  | 'strategy'
  | 'aborted'
  /** The device is lost. */
  | 'device'

export interface SearchResult extends SearchTally {
  /** Known trials first, then in the order of their reports. */
  readonly trials: readonly Trial[]
  /** Bugs of the compiler: to be kept and reported. */
  readonly wrong: readonly WrongResult[]
  readonly seconds: number
  readonly stopReason: StopReason
}

/** Tolerance for sums of shares. */
const EPSILON = 1e-9

/**
 * Searches a space for the fastest point.
 * ```ts
 * const { best, stopReason } = await search({ space, strategy: 'evolutionary', evaluate, trials: 64 })
 * ```
 * @throws SptError `search/budget`, `search/empty`, `search/strategy`, `space/point`, `search/outcomes`, and what the strategy and
 * `evaluate` throw
 */
export async function search(options: SearchOptions): Promise<SearchResult> {
  checkOptions(options)
  return new Run(options).result()
}

/** State of one search: options, spent budget and results. */
class Run {
  readonly #options: SearchOptions
  readonly #now: () => number
  readonly #start: number
  readonly #ending: Ending
  readonly #asked: AskedPoints
  #tally: Tally
  #done = 0
  #spent = 0

  constructor(options: SearchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#start = this.#now()
    this.#ending = new Ending(options)
    this.#asked = new AskedPoints(options.space)
    this.#tally = new Tally(options.space, undefined)
  }

  async result(): Promise<SearchResult> {
    try {
      const strategy = await this.#begin()
      for (;;) {
        const stopReason = this.#stops() ?? (await this.#round(strategy))
        if (!stopReason) continue
        await this.#hearOthers(strategy)
        const { found, trials, wrong } = this.#tally
        return { ...found, trials, wrong, seconds: this.#seconds, stopReason }
      }
    } finally {
      this.#ending.clear()
    }
  }

  /** Creates the strategy and reports known trials to it. */
  async #begin(): Promise<Strategy> {
    const { space, knownTrials = [] } = this.#options
    const counted = await this.#inTime(countingPoints(this.#options))
    const strategy = strategyOf(this.#options)
    this.#tally = new Tally(space, counted)
    this.#tally.add(knownTrials)
    this.#tally.sinceBest = 0
    this.#report([])
    await this.#inTime(telling(strategy, knownTrials))
    return strategy
  }

  /** Passes trials of other processes to the strategy, as known ones. */
  async #hearOthers(strategy: Strategy): Promise<void> {
    const { externalTrials } = this.#options
    const heard = externalTrials && (await this.#ending.unlessAborted(externalTrials))
    if (!heard || heard.length === 0) return
    const { sinceBest } = this.#tally
    this.#tally.add(heard)
    this.#tally.sinceBest = sinceBest
    await this.#inTime(telling(strategy, heard))
  }

  /** One iteration: proposes, evaluates and reports; returns the reason if the search ends. */
  async #round(strategy: Strategy): Promise<StopReason | null> {
    await this.#hearOthers(strategy)
    const asked = await this.#inTime(this.#asking(strategy))
    if (!asked) return null
    if (asked.length === 0) return this.#tally.found.remaining === 0 ? 'exhausted' : 'strategy'
    const told = await this.#tried(asked)
    if (told.length === 0) return null
    await this.#inTime(telling(strategy, told))
    return told.every(isLoss) ? 'device' : null
  }

  *#asking(strategy: Strategy): Stepwise<readonly EvaluationRequest[]> {
    const { trials = NONE, batch = 1 } = this.#options
    const most = Math.max(1, Math.min(batch, Math.ceil(trials - this.#spent - EPSILON)))
    const given = yield* strategy.askStepwise?.(most) ?? whole(() => strategy.ask(most))
    const points = yield* this.#asked.proper(given, most, strategy)
    // What tries one may not make another of it.
    return points.map((p) => ({ point: Object.freeze({ ...p }), share: strategy.share?.(p) ?? 1 }))
  }

  async #tried(asked: readonly EvaluationRequest[]): Promise<readonly Trial[]> {
    const { evaluate } = this.#options
    const { signal } = this.#ending
    const settled = new Map<number, Outcome>()
    const settle = (at: number, outcome: Outcome): void => void settled.set(at, outcome)
    let given: readonly (Outcome | null)[] | undefined
    try {
      given = await this.#ending.unlessAborted(() => evaluate(asked, { signal, report: settle }))
    } catch (e) {
      // What was told of before it broke has come nevertheless.
      this.#addSettled(asked, settled)
      throw e
    }
    // Given up halfway: what would have come of the others is not known.
    return !given && signal.aborted ? this.#addSettled(asked, settled) : this.#add(asked, given)
  }

  #addSettled(asked: readonly EvaluationRequest[], settled: ReadonlyMap<number, Outcome>): readonly Trial[] {
    const places = [...asked.keys()].filter((k) => settled.has(k))
    if (places.length === 0) return []
    return this.#add(
      places.map((k) => asked[k]!),
      places.map((k) => settled.get(k)),
    )
  }

  #add(tried: readonly EvaluationRequest[], given: unknown): readonly Trial[] {
    const outcomes = properOutcomes(tried, given, this.#options.externalTrials !== undefined)
    const told = tried.flatMap(({ point, share }, k): Trial[] => {
      const outcome = outcomes[k]
      if (!outcome) return []
      this.#spent += share
      return [share === 1 ? { point, outcome } : { point, outcome, share }]
    })
    this.#done += told.length
    this.#tally.add(told)
    this.#report(told)
    return told
  }

  #stops(): StopReason | null {
    const { signal, trials = NONE, seconds = NONE, patience = NONE } = this.#options
    if (signal?.aborted) return 'aborted'
    if (this.#spent >= trials - EPSILON) return 'trials'
    if (this.#ending.signal.aborted || this.#seconds >= seconds) return 'seconds'
    return this.#tally.sinceBest >= patience ? 'patience' : null
  }

  #report(last: readonly Trial[]): void {
    const { found, wrong } = this.#tally
    this.#options.onProgress?.({
      ...found,
      trialsDone: this.#done,
      wrong,
      seconds: this.#seconds,
      latestTrials: last,
    })
  }

  get #seconds(): number {
    return (this.#now() - this.#start) / 1000
  }

  #inTime<T>(work: Stepwise<T>): Promise<T | undefined> {
    return this.#ending.unlessAborted(() => inTurns(work, this.#ending.signal))
  }
}

const telling = (strategy: Strategy, trials: readonly Trial[]): Stepwise<void> =>
  strategy.tellStepwise?.(trials) ?? whole(() => strategy.tell(trials))

const isLoss = ({ outcome }: Trial): boolean => outcome.status === 'failed' && outcome.code === 'device/lost'

function strategyOf({ space, strategy, seed = 1, prior, seconds, trials }: SearchOptions): Strategy {
  const given = { seed, prior, seconds, trials }
  if (typeof strategy === 'string') return strategyNamed(strategy)(space, given)
  return properStrategy(typeof strategy === 'object' ? strategy : strategy(space, given))
}

/** A strategy's method without steps as a stepwise one. */
function* whole<T>(work: () => T): Stepwise<T> {
  yield
  return work()
}

/** `undefined`: too many to be counted. @throws SptError `search/empty`, `search/budget` */
function* countingPoints({ space, trials, seconds, patience }: SearchOptions): Stepwise<number | undefined> {
  const { points, isExact } = yield* counting(space)
  if (isExact && points === 0)
    fail({
      code: 'search/empty',
      message: `${space.name} has no points`,
      expected: 'values for each decision that its conditions allow',
    })
  const isBounded = [trials, seconds, patience].some((b) => b !== undefined && Number.isFinite(b))
  if (!isBounded && !(isExact && points <= LIST_LIMIT))
    fail({
      code: 'search/budget',
      message: `${space.name} has ${isExact ? '' : 'more than '}${points} points, and the search has no limit`,
      expected: 'trials, seconds or patience',
    })
  return isExact ? points : undefined
}
