/**
 * Stores and reductions (read-modify-write): the statements of Stages II and III that write elements; all others are in
 * `loops.ts`.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Load } from '../expressions/expr.ts'
import type { Monoid } from '../values/monoid.ts'

/**
 * `buffer[index] = value`. `unconditional`: executed by every thread into its own register, even under divergent
 * conditions. `combined`: the value is a sum, cast to the buffer's type; if other nests add to it, it keeps the type of
 * the sum.
 */
export interface Store {
  readonly kind: 'store'
  readonly buffer: string
  readonly index: readonly Expr[]
  readonly value: Expr
  readonly unconditional?: true | undefined
  readonly combined?: true | undefined
  readonly span?: Span | undefined
}

/**
 * `targets = targets ∘ values`. With `init` the targets start at the identity: lowering inserts that before the
 * outermost enclosing reduction loop. `atomic`: other threads may update the same element concurrently.
 */
export interface Reduce {
  readonly kind: 'reduce'
  readonly reducer: Monoid
  readonly targets: readonly Load[]
  readonly values: readonly Expr[]
  readonly init: boolean
  readonly atomic: boolean
  /** Combines the threads' own registers `targets` with those of other threads (a shuffle reduction). */
  readonly lanes?: Lanes | undefined
  readonly span?: Span | undefined
}

/**
 * Neighbouring threads that exchange registers. No enclosing loop is on thread.x; threads that a condition excluded
 * participate with the values they hold.
 */
export interface Lanes {
  /**
   * The number of threads that combine, a power of two: thread.x from a multiple of it on. All of them receive the
   * result.
   */
  readonly width: number
  /** Distance of the first exchange, a power of two; 1 if absent. The distance doubles with each exchange. */
  readonly first?: number | undefined
  /** The number of neighbours guaranteed to arrive together, a multiple of `width` that divides block extents. */
  readonly among: number
  /** All threads of the block must arrive together: the target has no exchange among a subset of them. */
  readonly together?: boolean | undefined
}
