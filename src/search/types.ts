import type { AbortSignalLike, Coroutine } from '../ast/work.ts'

/**
 * Data types shared by the modules of the search. A *space* is a tree of decisions; a *point* has a value for each decision
 * that its earlier values leave open; a *trial* is a point with its outcome. Strategies see spaces and trials only, never
 * kernels.
 */

/** A value of a decision: a number, or the text of a format, a schedule or a group of steps. */
export type DecisionValue = number | string

/** Values by decision, in the order in which they were decided. */
export type Point = Readonly<Record<string, DecisionValue>>

/** A decision that a point leaves open, with the values that the conditions of the space allow after those before. */
export interface OpenDecision {
  /** Unique within the space. */
  readonly name: string
  /** Allowed values; none: a dead end. */
  readonly values: readonly DecisionValue[]
  /** True if adjacent values are similar, as numbers are and names are not. */
  readonly ordered: boolean
  /**
   * Values that are often the best, which are sampled more often (for numbers, with their neighbours); absent if none is
   * known.
   */
  readonly likely?: readonly DecisionValue[] | undefined
  /** Number of values whose conditions were evaluated, if some were excluded: the effort of this decision. */
  readonly considered?: number | undefined
}

/** A search space. Pure: the same point gives the same results. */
export interface PointSpace {
  readonly name: string
  /** The decision after these, `null` for a whole point. */
  next(partial: Point): OpenDecision | null
  /**
   * Key of the subtree below a partial point: partial points with the same key have identical subtrees. With `remainderKey`, points
   * are counted by products, and sampled uniformly without enumeration.
   */
  remainderKey?(partial: Point): string
}

/** A schedule of a program, with arguments by place. */
export interface ScheduleCall {
  readonly name: string
  readonly args: readonly number[]
}

/** Points that are applied to a kernel by ordinary steps: `K` is a `Kernel`. */
export interface KernelSpace<K> extends PointSpace {
  /** Source text of the space, if it has one; it distinguishes the studies of spaces with the same name. */
  readonly text?: string | undefined
  /** @throws SptError if a step rejects the point, which is counted by the error's code */
  kernel(point: Point): K
  /** The schedule of the program that a whole point is; `null`: none with a name. */
  call?(point: Point): ScheduleCall | null
}

/** Outcome of a point. */
export type Outcome =
  /** Rejected by a step, the compiler or the device's limits. */
  | { readonly status: 'rejected'; readonly code: string; readonly message: string }
  /** It broke while it was compiled or run: a lost device, memory, time. */
  | { readonly status: 'failed'; readonly code: string; readonly message: string }
  /** It differs from the reference: disqualified for good, and a bug of the compiler. */
  | {
      readonly status: 'wrong'
      readonly message: string
      /** The steps of the point, as text that can be replayed. */
      readonly trace?: string | undefined
      /** Seed of the inputs. */
      readonly seed?: number | undefined
    }
  | { readonly status: 'measured'; readonly timing: Timing }
  /**
   * It was given up as far slower than the fastest before it was warm: a run takes at most `atMost` milliseconds, which is a
   * bound and not a time. Such points count as not measured: a search that is resumed may try them again.
   */
  | { readonly status: 'bounded'; readonly atMost: number }

/** Milliseconds of one run on the device. */
export interface Timing {
  readonly median: number
  /**
   * 95 % confidence interval of the median by order statistics; for two to five samples the minimum and maximum, with lower
   * confidence. `null` for a single sample.
   */
  readonly interval: readonly [low: number, high: number] | null
  readonly samples: readonly number[]
}

export interface Trial {
  readonly point: Point
  readonly outcome: Outcome
  /** Milliseconds predicted by the cost model, if it was used. */
  readonly predicted?: number | undefined
  /** Measurement effort as a fraction of a full measurement (`Strategy.share`); default 1. */
  readonly share?: number | undefined
}

/** A point to be tried, and with how much of a usual measurement's effort. */
export interface EvaluationRequest {
  readonly point: Point
  /** In (0, 1]; less than 1 only if the strategy supports it (`Strategy.share`). */
  readonly share: number
}

export interface EvaluationContext {
  /** Aborts when the search is to end. */
  readonly signal: AbortSignalLike
  /** Reports the outcome of a point, by its index, as soon as it is known, so that it survives the end of the search. */
  readonly report?: ((at: number, outcome: Outcome) => void) | undefined
}

/** Ask-and-tell search strategy: proposals depend only on the seed and the reported trials. */
export interface Strategy {
  readonly name: string
  /** At most `count` points that were not proposed before; fewer, or none, if the space is exhausted. */
  ask(count: number): readonly Point[]
  /** Reports trials, including those of an earlier search: their points are not proposed again. */
  tell(trials: readonly Trial[]): void
  /** Stepwise forms of `ask` and `tell`, so that a search can end between steps; it waits for strategies without them. */
  askStepwise?(count: number): Coroutine<readonly Point[]>
  tellStepwise?(trials: readonly Trial[]): Coroutine<void>
  /** Measurement effort for a proposed point, in (0, 1]; default 1. A point is proposed again only for a greater share. */
  share?(point: Point): number
}

export interface StrategyOptions {
  readonly seed: number
  /** Expected milliseconds of points (any monotone scale does), without measuring: the cost model as a prior. */
  readonly prior?: ((points: readonly Point[]) => readonly number[]) | undefined
  /** Budget of the search; the prior uses a part of it, or unlimited time without a budget. */
  readonly seconds?: number | undefined
  /** Trials of the search: for few trials, strategies rank fewer points in advance. Absent: unlimited. */
  readonly trials?: number | undefined
}

export type StrategyFactory = (space: PointSpace, options: StrategyOptions) => Strategy
