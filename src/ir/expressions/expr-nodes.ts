/**
 * Expressions: one algebra for all three stages. Nodes are plain frozen data (JSON in, JSON out), built by the
 * constructors in `expr.ts`.
 *
 * Meaning of `load` and `search` by stage:
 *
 * - I: `index` are coordinates, one per dimension of the buffer; `search` does not occur.
 *
 * - II: `index` are positions, one per tree of the buffer's axes; searches and index-array loads occur.
 *
 * - III: `index` is one flat element address; `search` is gone (a loop computed it).
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { BIND_TARGETS, type BindTarget } from '../../ast/nodes/nodes-schedules.ts'
import type { ExprType } from '../values/dtype.ts'
import type { BinaryOp, MathFn } from '../values/math.ts'

/** The hardware indices that bound loops become in Stage III. */
export const THREAD_AXES = BIND_TARGETS
export type ThreadAxis = BindTarget

interface Node {
  readonly dtype: ExprType
  readonly span?: Span | undefined
}

/** A constant of its type; floats include infinities and NaN. */
export interface Const extends Node {
  readonly kind: 'const'
  readonly value: number
}
/** A size, scalar parameter, loop variable or `let`; names are unique in a kernel. */
export interface Var extends Node {
  readonly kind: 'var'
  readonly name: string
}
/** A hardware index (Stage III). */
export interface Builtin extends Node {
  readonly kind: 'builtin'
  readonly axis: ThreadAxis
}
export interface Unary extends Node {
  readonly kind: 'unary'
  readonly op: 'neg' | 'not'
  readonly x: Expr
}
export interface Binary extends Node {
  readonly kind: 'binary'
  readonly op: BinaryOp
  readonly a: Expr
  readonly b: Expr
}
export interface Call extends Node {
  readonly kind: 'call'
  readonly fn: MathFn
  readonly args: readonly Expr[]
}
/** Only the chosen branch is evaluated: loads in the other may be out of range. */
interface Select extends Node {
  readonly kind: 'select'
  readonly cond: Expr
  readonly then: Expr
  readonly else: Expr
}
export interface Cast extends Node {
  readonly kind: 'cast'
  readonly x: Expr
}
export interface Load extends Node {
  readonly kind: 'load'
  readonly buffer: string
  readonly index: readonly Expr[]
}
/**
 * The first position p in `[lo, hi)` of the one-dimensional buffer with `buffer[p] >= value` (`lower`) or `buffer[p] >
 * value` (`upper`), by bisection. `next` is `upper` by steps from `lo`, for a result close to it. `linear` finds the
 * first equal element and needs no order. The result is `hi` if there is no such position.
 */
export interface Search extends Node {
  readonly kind: 'search'
  readonly method: 'lower' | 'upper' | 'next' | 'linear'
  readonly buffer: string
  /** For an array of packed words: bits of each field. */
  readonly bits?: number | undefined
  readonly lo: Expr
  readonly hi: Expr
  readonly value: Expr
}

export type Expr = Const | Var | Builtin | Unary | Binary | Call | Select | Cast | Load | Search
