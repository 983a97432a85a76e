/** Search loop: proposes, evaluates and reports points until a budget is spent or nothing better is found. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { type Coroutine, Work } from '../../ast/work.ts'
import { countSteps } from '../spaces/point-walks.ts'
import { LIST_LIMIT } from '../spaces/points.ts'
import { strategyNamed } from '../strategies/index.ts'
import type { EvaluationRequest, Outcome, Strategy, Trial } from '../types.ts'
import { Ending } from './ending.ts'
import type { SearchOptions } from './search-options.ts'
import { checkOptions, expectOutcomes, expectStrategy, NONE, ProposedPoints } from './search-options.ts'
import { type SearchTally, Tally, type WrongResult } from './tally.ts'

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
  return runSearch(options)
}

/** `search` with options that are valid; it ignores others. */
export const runSearch = (options: SearchOptions): Promise<SearchResult> => new Run(options).result()

class Run {
  readonly #now: () => number
  readonly #start: number
  readonly #ending: Ending
  readonly #proposals: ProposedPoints
  #tally: Tally
  #trialCount = 0
  #spent = 0

  constructor(private readonly options: SearchOptions) {
    this.#now = options.now ?? (() => performance.now())
    this.#start = this.#now()
    this.#ending = new Ending(options)
    this.#proposals = new ProposedPoints(options.space)
    this.#tally = new Tally(options.space, undefined)
  }

  async result(): Promise<SearchResult> {
    using _ = this.#ending
    const strategy = await this.#begin()
    for (;;) {
      const stopReason = this.#stops() ?? (await this.#round(strategy))
      if (!stopReason) continue
      await this.#addExternalTrials(strategy)
      const { found, trials, wrong } = this.#tally
      return { ...found, trials, wrong, seconds: this.#seconds, stopReason }
    }
  }

  async #begin(): Promise<Strategy> {
    const { space, knownTrials = [] } = this.options
    const counted = await this.#unlessAborted(countPoints(this.options))
    const strategy = strategyOf(this.options)
    this.#tally = new Tally(space, counted)
    this.#tally.add(knownTrials)
    this.#tally.sinceBest = 0
    this.#report([])
    await this.#unlessAborted(reportTrials(strategy, knownTrials))
    return strategy
  }

  /** Passes trials of other processes to the strategy, as known ones. */
  async #addExternalTrials(strategy: Strategy): Promise<void> {
    const { externalTrials } = this.options
    const external = externalTrials && (await this.#ending.unlessAborted(externalTrials))
    if (!external || external.length === 0) return
    const { sinceBest } = this.#tally
    this.#tally.add(external)
    this.#tally.sinceBest = sinceBest
    await this.#unlessAborted(reportTrials(strategy, external))
  }

  /** One iteration: proposes, evaluates and reports; returns the reason if the search ends. */
  async #round(strategy: Strategy): Promise<StopReason | null> {
    await this.#addExternalTrials(strategy)
    const requests = await this.#unlessAborted(this.#propose(strategy))
    if (!requests) return null
    if (requests.length === 0) return this.#tally.found.remaining === 0 ? 'exhausted' : 'strategy'
    const trials = await this.#evaluate(requests)
    if (trials.length === 0) return null
    await this.#unlessAborted(reportTrials(strategy, trials))
    return trials.every(isDeviceLost) ? 'device' : null
  }

  *#propose(strategy: Strategy): Coroutine<readonly EvaluationRequest[]> {
    const { trials = NONE, batch = 1 } = this.options
    const limit = Math.max(1, Math.min(batch, Math.ceil(trials - this.#spent - EPSILON)))
    const proposed = yield* strategy.askStepwise?.(limit) ?? asStepwise(() => strategy.ask(limit))
    const points = yield* this.#proposals.proper(proposed, limit, strategy)
    // Frozen: `evaluate` must not change the points.
    return points.map((p) => ({ point: Object.freeze({ ...p }), share: strategy.share?.(p) ?? 1 }))
  }

  async #evaluate(requests: readonly EvaluationRequest[]): Promise<readonly Trial[]> {
    const { evaluate } = this.options
    const { signal } = this.#ending
    const settled = new Map<number, Outcome>()
    const settle = (index: number, outcome: Outcome): void => void settled.set(index, outcome)
    let results: readonly (Outcome | null)[] | undefined
    try {
      results = await this.#ending.unlessAborted(() => evaluate(requests, { signal, report: settle }))
    } catch (e) {
      // Trials that were reported before the failure count.
      this.#addSettled(requests, settled)
      throw e
    }
    // Aborted: only trials that were reported have results.
    return !results && signal.aborted ? this.#addSettled(requests, settled) : this.#add(requests, results)
  }

  #addSettled(
    requests: readonly EvaluationRequest[],
    settled: ReadonlyMap<number, Outcome>,
  ): readonly Trial[] {
    const indices = [...requests.keys()].filter((k) => settled.has(k))
    if (indices.length === 0) return []
    return this.#add(
      indices.map((k) => requests[k]!),
      indices.map((k) => settled.get(k)),
    )
  }

  #add(requests: readonly EvaluationRequest[], results: unknown): readonly Trial[] {
    const outcomes = expectOutcomes(requests, results, this.options.externalTrials !== undefined)
    const trials = requests.flatMap(({ point, share }, k): Trial[] => {
      const outcome = outcomes[k]
      if (!outcome) return []
      this.#spent += share
      return [share === 1 ? { point, outcome } : { point, outcome, share }]
    })
    this.#trialCount += trials.length
    this.#tally.add(trials)
    this.#report(trials)
    return trials
  }

  #stops(): StopReason | null {
    const { signal, trials = NONE, seconds = NONE, patience = NONE } = this.options
    if (signal?.aborted) return 'aborted'
    if (this.#spent >= trials - EPSILON) return 'trials'
    if (this.#ending.signal.aborted || this.#seconds >= seconds) return 'seconds'
    return this.#tally.sinceBest >= patience ? 'patience' : null
  }

  #report(latestTrials: readonly Trial[]): void {
    const { found, wrong } = this.#tally
    this.options.onProgress?.({
      ...found,
      trialsDone: this.#trialCount,
      wrong,
      seconds: this.#seconds,
      latestTrials,
    })
  }

  get #seconds(): number {
    return (this.#now() - this.#start) / 1000
  }

  #unlessAborted<T>(work: Coroutine<T>): Promise<T | undefined> {
    return this.#ending.unlessAborted(() => new Work({ signal: this.#ending.signal }).run(work))
  }
}

const reportTrials = (strategy: Strategy, trials: readonly Trial[]): Coroutine<void> =>
  strategy.tellStepwise?.(trials) ?? asStepwise(() => strategy.tell(trials))

const isDeviceLost = ({ outcome }: Trial): boolean =>
  outcome.status === 'failed' && outcome.code === 'device/lost'

function strategyOf({ space, strategy, seed = 1, prior, seconds, trials }: SearchOptions): Strategy {
  const strategyOptions = { seed, prior, seconds, trials }
  if (typeof strategy === 'string') return strategyNamed(strategy)(space, strategyOptions)
  return expectStrategy(typeof strategy === 'object' ? strategy : strategy(space, strategyOptions))
}

/** A strategy's method without steps as a stepwise one. */
function* asStepwise<T>(work: () => T): Coroutine<T> {
  yield
  return work()
}

/** `undefined`: too many to be counted. @throws SptError `search/empty`, `search/budget` */
function* countPoints({ space, trials, seconds, patience }: SearchOptions): Coroutine<number | undefined> {
  const { points, isExact } = yield* countSteps(space)
  if (isExact && points === 0)
    failWith('search/empty', `${space.name} has no points`, {
      expected: 'values for each decision that the conditions allow',
    })
  const isBounded = [trials, seconds, patience].some((b) => b !== undefined && Number.isFinite(b))
  if (!isBounded && !(isExact && points <= LIST_LIMIT))
    failWith(
      'search/budget',
      `${space.name} has ${isExact ? '' : 'more than '}${points} points, and the search has no limit`,
      { expected: 'trials, seconds or patience' },
    )
  return isExact ? points : undefined
}
