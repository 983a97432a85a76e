/** What a statement can see besides the kernel's declarations: iterators and `let`s around it. */
import type { Span } from '../../ast/diagnostic.ts'
import type { Axis } from '../axis.ts'
import type { Dtype } from '../dtype.ts'

export interface Seen {
  readonly what: 'iterator' | 'let'
  readonly name: string
  readonly span: Span
  readonly dtype: Dtype
  /** Of an iterator (or a member of a fused one): the axis as declared. */
  readonly axis: Axis | null
  /** Of a `let`: levels of operations in its value, with those of the `let`s it mentions. */
  readonly levels?: number | undefined
}

/** Innermost last; names are unique. */
export type Scope = readonly Seen[]

export const find = (scope: Scope, name: string): Seen | undefined => scope.findLast((s) => s.name === name)

/** The iterator that stands on a stored axis, itself or through an attached view of it. */
export function standsOn(scope: Scope, axis: string): Seen | undefined {
  return scope.findLast(
    (s) => s.axis !== null && (s.axis.name === axis || (s.axis.kind === 'attached' && s.axis.base === axis)),
  )
}
