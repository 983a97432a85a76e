/** Options of a search, and the progress that it reports. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectOptions, isRecord, show } from '../../ast/diagnostics/expect-argument.ts'
import {
  either,
  expectValue,
  expectValues,
  FUNCTION,
  LIST,
  SIGNAL,
  TEXT,
  type ValueKind,
} from '../../ast/diagnostics/value-kinds.ts'
import type { AbortSignalLike, Coroutine } from '../../ast/work.ts'
import { outcomeFault } from '../outcomes.ts'
import { checkSteps, pointKey } from '../spaces/point-walks.ts'
import type {
  EvaluationContext,
  EvaluationRequest,
  Outcome,
  Point,
  PointSpace,
  Strategy,
  StrategyFactory,
  StrategyOptions,
  Trial,
} from '../types.ts'
import type { SearchTally, WrongResult } from './tally.ts'

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
    requests: readonly EvaluationRequest[],
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
  readonly signal?: AbortSignalLike | undefined
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

export const NONE = Number.POSITIVE_INFINITY

type Kinds = Partial<Record<keyof SearchOptions, ValueKind>>

const isStrategy = (x: unknown): boolean => isRecord(x) && typeof x.ask === 'function'

const REQUIRED = {
  space: {
    holds: (x) => typeof (x as PointSpace | undefined)?.next === 'function',
    expected: 'a space of points',
  },
  strategy: either(
    { ...TEXT, expected: 'the name of a strategy' },
    { holds: (x) => FUNCTION.holds(x) || isStrategy(x), expected: 'one' },
  ),
  evaluate: { ...FUNCTION, expected: 'a function of points' },
} as const satisfies Kinds

const OPTIONAL = {
  prior: { ...FUNCTION, expected: 'a function of points that gives a number for each' },
  signal: SIGNAL,
  externalTrials: FUNCTION,
  knownTrials: LIST,
  onProgress: FUNCTION,
  now: FUNCTION,
} as const satisfies Kinds

const BUDGETS = ['trials', 'seconds', 'patience', 'batch', 'seed', 'graceSeconds'] as const
const NAMES = [...Object.keys(REQUIRED), ...BUDGETS, ...Object.keys(OPTIONAL)] as (keyof SearchOptions)[]

/** @throws SptError `api/argument`, `api/unknown-option`, `search/budget` */
export function checkOptions(options: SearchOptions): void {
  expectOptions('search', options, NAMES)
  for (const [name, kind] of Object.entries(REQUIRED))
    expectValue(name, options[name as keyof typeof REQUIRED], kind)
  const { trials, seconds, patience, batch, graceSeconds = 0 } = options
  checkBudgets({ trials, seconds, patience, batch })
  if (!(typeof graceSeconds === 'number' && graceSeconds >= 0))
    failBudget('grace', graceSeconds, 'seconds, from 0 on')
  expectValues(options, OPTIONAL)
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

const failBudget = (name: string, budget: unknown, expected: string): never =>
  failWith('search/budget', `${name} cannot be ${show(budget)}`, { expected })

// Validates user-defined strategies and the points they propose.

/** @throws SptError `search/strategy` if it lacks `ask` or `tell` */
export function expectStrategy(made: unknown): Strategy {
  if (isRecord(made) && typeof made.ask === 'function' && typeof made.tell === 'function')
    return made as unknown as Strategy
  return failWith('search/strategy', `a strategy is ${show(made)}`, { expected: '{ name, ask, tell }' })
}

/** Checks proposed points: each belongs to the space, and is proposed again only for a greater share. */
export class ProposedPoints {
  readonly #shares = new Map<string, number>()

  constructor(private readonly space: PointSpace) {}

  /** @throws SptError `search/strategy`, and `space/point` where one is not of the space */
  *proper(given: unknown, most: number, strategy: Strategy): Coroutine<readonly Point[]> {
    if (!Array.isArray(given) || given.length > most)
      return failWith(
        'search/strategy',
        `a strategy must return at most ${most} points, and returned ${Array.isArray(given) ? given.length : show(given)}`,
        {
          expected:
            'a list of at most the requested number of points, not a promise; an empty list ends the search',
          ...(given instanceof Promise
            ? { hint: 'make ask a function that is not async; only evaluate may be async' }
            : {}),
        },
      )
    const out: Point[] = []
    for (const wanted of given as readonly Point[]) {
      const point = yield* checkSteps(this.space, wanted)
      const key = pointKey(point)
      const [share, before] = [strategy.share?.(wanted) ?? 1, this.#shares.get(key) ?? 0]
      if (!(share > before && share <= 1)) refuse(point, share, before)
      this.#shares.set(key, share)
      out.push(point)
    }
    return out
  }
}

function refuse(point: Point, share: number, before: number): never {
  return failWith(
    'search/strategy',
    before > 0
      ? `a strategy repeats ${JSON.stringify(point)}`
      : `a strategy requests a share of ${show(share)} of the measurement of ${JSON.stringify(point)}`,
    {
      expected:
        before > 0 ? `a new point, or a share of more than ${before}` : 'a share of more than 0, at most 1',
      hint: 'a list without points ends the search',
    },
  )
}

// Validates the outcomes that user functions return.

/**
 * Validates outcomes of points. An impossible time (NaN, negative) becomes a failed outcome, so that the other measurements
 * are kept.
 * @throws SptError `search/outcomes` if the number of outcomes differs from the number of points
 */
export function expectOutcomes(
  requests: readonly { readonly point: Point }[],
  given: unknown,
  mayBeNull = false,
): readonly (Outcome | null)[] {
  const isList = Array.isArray(given)
  if (!isList || given.length !== requests.length)
    return failWith(
      'search/outcomes',
      `${requests.length} points were measured, and ${isList ? `${given.length} outcomes` : show(given)} came`,
      { expected: 'a list with an outcome for each point, in their order' },
    )
  return given.map((outcome, k) => {
    if (outcome === null && mayBeNull) return null
    const fault = outcomeFault(outcome)
    if (fault === null) return outcome
    const { what, expected, isTime } = fault
    if (isTime) return { status: 'failed', code: 'search/outcomes', message: `${what}, not ${expected}` }
    return failWith('search/outcomes', `${what}: of ${JSON.stringify(requests[k]!.point)}`, { expected })
  })
}
