/** Options of a search, and the progress that it reports. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions, show } from '../../ast/diagnostics/expect-argument.ts'
import { expectValues, FUNCTION, LIST } from '../../ast/diagnostics/value-kinds.ts'
import type {
  Outcome,
  Point,
  PointSpace,
  Strategy,
  StrategyFactory,
  StrategyOptions,
  Trial,
} from '../types.ts'
import type { SearchTally, WrongResult } from './tally.ts'

/** A point to be tried, and with how much of a usual measurement's effort. */
export interface EvaluationRequest {
  readonly point: Point
  /** In (0, 1]; less than 1 only if the strategy supports it (`Strategy.share`). */
  readonly share: number
}

export interface EvaluationContext {
  /** Aborts when the search is to end. */
  readonly signal: AbortSignal
  /** Reports the outcome of a point, by its index, as soon as it is known, so that it survives the end of the search. */
  readonly report?: ((at: number, outcome: Outcome) => void) | undefined
}

export interface SearchOptions {
  readonly space: PointSpace
  /** A strategy's name (`STRATEGIES`), its constructor, or a strategy to continue. */
  readonly strategy: string | StrategyFactory | Strategy
  /**
   * Evaluates points and returns their outcomes in order. Failures caused by a point are outcomes; a rejected promise ends
   * the search with its error, except after `signal` aborted. `null`: another process evaluates the point and reports it
   * through `externalTrials`.
   */
  readonly evaluate: (
    asked: readonly EvaluationRequest[],
    context: EvaluationContext,
  ) => Promise<readonly (Outcome | null)[]>
  /**
   * Trials completed by others since the last call: reported before each proposal, and part of the result. They do not count
   * in the budget.
   */
  readonly externalTrials?: (() => Promise<readonly Trial[]>) | undefined
  /** Maximum number of full measurements; a trial with a share counts as that fraction. */
  readonly trials?: number | undefined
  readonly seconds?: number | undefined
  /** Trials without a better one after which it ends. */
  readonly patience?: number | undefined
  /** Points that are tried together, so that they can be measured against each other; 1. */
  readonly batch?: number | undefined
  /** Seed of the strategy; 1. */
  readonly seed?: number | undefined
  /** For a strategy that is made (`StrategyOptions`). */
  readonly prior?: StrategyOptions['prior']
  /**
   * Trials of an earlier search: reported before the first proposal, and part of the result. They do not count in the budget.
   */
  readonly knownTrials?: readonly Trial[] | undefined
  /** Ends it with the best so far. */
  readonly signal?: AbortSignal | undefined
  /** Seconds for `evaluate` to end after its signal aborted, before it is abandoned; 30. */
  readonly graceSeconds?: number | undefined
  /**
   * Called once before the first proposal, and after the trials of each batch; for a batch in which `evaluate` threw, with
   * the trials reported before.
   */
  readonly onProgress?: ((progress: SearchProgress) => void) | undefined
  /** Milliseconds, of which the differences count; the host's clock. */
  readonly now?: (() => number) | undefined
}

export interface SearchProgress extends SearchTally {
  /** Trials of this search. */
  readonly trialsDone: number
  readonly wrong: readonly WrongResult[]
  readonly seconds: number
  /** The trials reported last. */
  readonly latestTrials: readonly Trial[]
}

/** A budget that is not given. */
export const NONE = Number.POSITIVE_INFINITY

/** @throws SptError `api/argument`, `api/unknown-option`, `search/budget` */
export function checkOptions(options: SearchOptions): void {
  expectOptions('search', options, [
    'space',
    'strategy',
    'evaluate',
    'trials',
    'seconds',
    'patience',
    'batch',
    'seed',
    'prior',
    'knownTrials',
    'externalTrials',
    'signal',
    'onProgress',
    'now',
    'graceSeconds',
  ])
  const { space, strategy, evaluate, trials, seconds, patience, batch, prior, signal, graceSeconds } = options
  expectArgument(typeof space?.next === 'function', 'space', space, 'a space of points')
  expectArgument(typeof evaluate === 'function', 'evaluate', evaluate, 'a function of points')
  const isStrategy = typeof strategy === 'object' && strategy !== null && typeof strategy.ask === 'function'
  expectArgument(
    ['string', 'function'].includes(typeof strategy) || isStrategy,
    'strategy',
    strategy,
    'the name of a strategy, or one',
  )
  checkBudgets({ trials, seconds, patience, batch })
  expectArgument(prior === undefined || typeof prior === 'function', 'prior', prior, PRIOR)
  const isSignal = signal === undefined || typeof signal?.addEventListener === 'function'
  expectArgument(isSignal, 'signal', signal, 'the signal of an AbortController')
  if (graceSeconds !== undefined && !(typeof graceSeconds === 'number' && graceSeconds >= 0))
    failBudget('grace', graceSeconds, 'seconds, from 0 on')
  expectValues(options, {
    externalTrials: FUNCTION,
    onProgress: FUNCTION,
    now: FUNCTION,
    knownTrials: LIST,
  })
}

/** @throws SptError `search/budget` */
export function checkBudgets({
  seconds,
  ...counts
}: Pick<SearchOptions, 'trials' | 'seconds' | 'patience' | 'batch'>): void {
  for (const [name, budget] of Object.entries(counts))
    if (budget !== undefined && budget !== NONE && !(Number.isSafeInteger(budget) && budget >= 1))
      failBudget(name, budget, 'a whole number from 1 on')
  if (seconds !== undefined && !(typeof seconds === 'number' && seconds > 0))
    failBudget('seconds', seconds, 'more than 0')
}

const PRIOR = 'a function of points that gives a number for each'

const failBudget = (name: string, budget: unknown, expected: string): never =>
  fail({ code: 'search/budget', message: `${name} cannot be ${show(budget)}`, expected })
