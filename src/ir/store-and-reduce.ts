/**
 * Stores and reductions (read-modify-write): the statements of Stages II and III that write elements; `loops.ts` has all
 * others.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Expr, Load } from './expr.ts'
import type { Monoid } from './monoid.ts'

/**
 * `buffer[index] = value`. `unconditional`: into every thread's register, whatever conditions they disagree on. `combined`:
 * the value is a sum, cast to the buffer's type; where other nests go on with it, it stays in the type it is combined in.
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
 * `targets = targets ∘ values`. With `init` the targets start at the identity: lowering places that before the
 * outermost enclosing reduction loop. `atomic`: other threads may update the same element at the same time.
 */
export interface Reduce {
  readonly kind: 'reduce'
  readonly reducer: Monoid
  readonly targets: readonly Load[]
  readonly values: readonly Expr[]
  readonly init: boolean
  readonly atomic: boolean
  /** The threads' own registers `targets` combine with the values of other threads, which are in registers. */
  readonly lanes?: Lanes | undefined
  readonly span?: Span | undefined
}

/**
 * Neighbouring threads that exchange registers. Stands where no loop around is on thread.x; threads that a
 * condition left out take part with what they hold.
 */
export interface Lanes {
  /** How many threads combine, a power of two: thread.x from a multiple of it on. All of them get the result. */
  readonly width: number
  /** Distance of the first exchange, a power of two; 1 if absent. The distance doubles with each exchange. */
  readonly first?: number | undefined
  /** How many neighbours surely arrive together, a multiple of `width`; block extents divide into it. */
  readonly among: number
  /** All threads of the block have to arrive together: the target has no exchange among some of them. */
  readonly together?: boolean | undefined
}
