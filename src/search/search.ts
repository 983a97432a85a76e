/** The loop around a strategy: asks, has points tried, tells, until a budget is spent or nothing better comes. */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, expectOptions, show } from '../ast/expect-argument.ts'
import { expectValues, FUNCTION, LIST } from '../ast/value-kinds.ts'
import { Ending } from './ending.ts'
import { properOutcomes } from './outcome-checks.ts'
import { counting } from './point-walks.ts'
import { LISTED_POINTS } from './points.ts'
import { inTurns, type Stepwise } from './stepwise.ts'
import { strategyNamed } from './strategies/index.ts'
import { AskedPoints, properStrategy } from './strategy-checks.ts'
import { type Found, Tally, type WrongResult } from './tally.ts'
import type { Outcome, Point, PointSpace, Strategy, StrategyOf, StrategyOptions, Trial } from './types.ts'

/** A point to be tried, and with how much of a usual measurement's effort. */
export interface Asked {
  readonly point: Point
  /** In (0, 1]; less than 1 only where the strategy knows of it (`Strategy.share`). */
  readonly share: number
}

export interface EvaluateContext {
  /** Aborts when the search is to end. */
  readonly signal: AbortSignal
  /** May be told what came of a point, by its place, as soon as that is known: where the search ends, it is not lost. */
  readonly settle?: ((at: number, outcome: Outcome) => void) | undefined
}

export interface SearchOptions {
  readonly space: PointSpace
  /** A strategy's name (`STRATEGIES`), how one is made, or one that goes on. */
  readonly strategy: string | StrategyOf | Strategy
  /**
   * What comes of some points, in their order. What a point is to blame for is an outcome; a rejection ends the search with
   * that error, but for one after `signal` aborted.
   */
  readonly evaluate: (asked: readonly Asked[], context: EvaluateContext) => Promise<readonly Outcome[]>
  /** Whole measurements at most: a trial with a share counts as that much. */
  readonly trials?: number | undefined
  readonly seconds?: number | undefined
  /** Trials without a better one after which it ends. */
  readonly patience?: number | undefined
  /** Points that are tried together, so that they can be measured against each other; 1. */
  readonly batch?: number | undefined
  /** Of a strategy that is made; 1. */
  readonly seed?: number | undefined
  /** For a strategy that is made (`StrategyOptions`). */
  readonly prior?: StrategyOptions['prior']
  /** Of an earlier search: told before anything is asked, and part of the result. They count in no budget. */
  readonly known?: readonly Trial[] | undefined
  /** Ends it with the best so far. */
  readonly signal?: AbortSignal | undefined
  /** Seconds that `evaluate` has to end once its signal aborted, after which what it does is left alone; 30. */
  readonly grace?: number | undefined
  /**
   * Once before anything is asked, and after the trials of each batch; of one in which `evaluate` threw, of what it told of
   * before.
   */
  readonly onProgress?: ((progress: SearchProgress) => void) | undefined
  /** Milliseconds, of which the differences count; the host's clock. */
  readonly now?: (() => number) | undefined
}

export interface SearchProgress extends Found {
  /** Trials of this search. */
  readonly done: number
  readonly wrong: readonly WrongResult[]
  readonly seconds: number
  /** The trials that were told last. */
  readonly last: readonly Trial[]
}

export type StoppedBy =
  | 'trials'
  | 'seconds'
  | 'patience'
  /** No point is left. */
  | 'exhausted'
  /** It asks for no more, though points are left, or the space is too large for that to be known. */
  | 'strategy'
  | 'aborted'
  /** It is lost: nothing else would run. */
  | 'device'

export interface SearchResult extends Found {
  /** Known ones first, then in the order in which they were told. */
  readonly trials: readonly Trial[]
  /** Bugs of the compiler: to be kept and reported. */
  readonly wrong: readonly WrongResult[]
  readonly seconds: number
  readonly stoppedBy: StoppedBy
}

const NONE = Number.POSITIVE_INFINITY
/** Shares add up to whole trials but for this. */
const EPSILON = 1e-9

/**
 * Searches a space for the fastest point.
 * ```ts
 * const { best, stoppedBy } = await search({ space, strategy: 'evolutionary', evaluate, trials: 64 })
 * ```
 * @throws SptError `search/budget`, `search/empty`, `search/strategy`, `space/point`, `search/outcomes`, and what the strategy and
 * `evaluate` throw
 */
export async function search(options: SearchOptions): Promise<SearchResult> {
  check(options)
  const { space, evaluate, trials = NONE, seconds = NONE, patience = NONE, batch = 1, known = [] } = options
  const now = options.now ?? (() => performance.now())
  const start = now()
  const elapsed = (): number => (now() - start) / 1000
  const ending = new Ending(options)
  const inTime = <T>(work: Stepwise<T>): Promise<T | undefined> =>
    ending.unlessAborted(() => inTurns(work, ending.signal))
  let [done, spent] = [0, 0]
  let tally = new Tally(space, undefined)
  const stops = (): StoppedBy | null => {
    if (options.signal?.aborted) return 'aborted'
    if (spent >= trials - EPSILON) return 'trials'
    if (ending.signal.aborted || elapsed() >= seconds) return 'seconds'
    return tally.sinceBest >= patience ? 'patience' : null
  }
  const ended = (stoppedBy: StoppedBy): SearchResult => {
    const { trials, wrong } = tally
    return { ...tally.found, trials, wrong, seconds: elapsed(), stoppedBy }
  }
  try {
    const counted = await inTime(countingPoints(options))
    const strategy = strategyOf(options)
    const points = new AskedPoints(space)
    const ask = function* (most: number): Stepwise<readonly Point[]> {
      const given = yield* strategy.asking?.(most) ?? whole(() => strategy.ask(most))
      return yield* points.proper(given, most, strategy)
    }
    const tell = (trials: readonly Trial[]): Stepwise<void> =>
      strategy.telling?.(trials) ?? whole(() => strategy.tell(trials))
    tally = new Tally(space, counted)
    tally.add(known)
    tally.sinceBest = 0
    const progress = (last: readonly Trial[]): void =>
      options.onProgress?.({ ...tally.found, done, wrong: tally.wrong, seconds: elapsed(), last })
    progress([])
    await inTime(tell(known))
    for (;;) {
      const stopped = stops()
      if (stopped) return ended(stopped)
      const most = Math.max(1, Math.min(batch, Math.ceil(trials - spent - EPSILON)))
      const wanted = await inTime(ask(most))
      if (!wanted) continue
      const asked = wanted.map((point) => ({
        // What tries it may not make another of it.
        point: Object.freeze({ ...point }),
        share: strategy.share?.(point) ?? 1,
      }))
      if (asked.length === 0) return ended(tally.found.left === 0 ? 'exhausted' : 'strategy')
      const settled = new Map<number, Outcome>()
      const settle = (at: number, outcome: Outcome): void => void settled.set(at, outcome)
      const add = (tried: readonly Asked[], given: unknown): readonly Trial[] => {
        const outcomes = properOutcomes(tried, given)
        const told = tried.map(({ point, share }, k): Trial => {
          const outcome = outcomes[k]!
          return share === 1 ? { point, outcome } : { point, outcome, share }
        })
        done += told.length
        spent += tried.reduce((sum, { share }) => sum + share, 0)
        tally.add(told)
        progress(told)
        return told
      }
      const addSettled = (): readonly Trial[] => {
        const places = [...asked.keys()].filter((k) => settled.has(k))
        if (places.length === 0) return []
        return add(
          places.map((k) => asked[k]!),
          places.map((k) => settled.get(k)),
        )
      }
      let given: readonly Outcome[] | undefined
      try {
        given = await ending.unlessAborted(() => evaluate(asked, { signal: ending.signal, settle }))
      } catch (e) {
        // What was told of before it broke has come nevertheless.
        addSettled()
        throw e
      }
      // Given up halfway: what would have come of the others is not known.
      const told = !given && ending.signal.aborted ? addSettled() : add(asked, given)
      if (told.length === 0) continue
      await inTime(tell(told))
      if (told.every(({ outcome }) => outcome.status === 'failed' && outcome.code === 'device/lost'))
        return ended('device')
    }
  } finally {
    ending.clear()
  }
}

function strategyOf({ space, strategy, seed = 1, prior, seconds }: SearchOptions): Strategy {
  const given = { seed, prior, seconds }
  if (typeof strategy === 'string') return strategyNamed(strategy)(space, given)
  return properStrategy(typeof strategy === 'object' ? strategy : strategy(space, given))
}

/** Of a strategy that has no steps. */
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
  if (!isBounded && !(isExact && points <= LISTED_POINTS))
    fail({
      code: 'search/budget',
      message: `${space.name} has ${isExact ? '' : 'more than '}${points} points, and nothing says when the search ends`,
      expected: 'trials, seconds or patience',
    })
  return isExact ? points : undefined
}

function check(options: SearchOptions): void {
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
    'known',
    'signal',
    'onProgress',
    'now',
    'grace',
  ])
  const { space, strategy, evaluate, trials, seconds, patience, batch, prior, signal, grace } = options
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
  if (grace !== undefined && !(typeof grace === 'number' && grace >= 0))
    failBudget('grace', grace, 'seconds, from 0 on')
  expectValues(options, { onProgress: FUNCTION, now: FUNCTION, known: LIST })
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
