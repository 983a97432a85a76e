/** Steps on coordinates (Stage I) as plain data. */
import type { Span } from '../../ast/diagnostic.ts'
import type { AnyFormat } from '../../ir/format.ts'

interface At {
  readonly span?: Span | undefined
}

/** `A as blocks(16)`, `A as by_length(5)`: arguments are numbers, and names of lists and sets among the data */
export interface AsStep extends At {
  readonly kind: 'as'
  readonly buffer: string
  readonly format: AnyFormat
  readonly args: readonly (number | string)[]
}
/** `reorder (f, j)` on iterators: the new order, outermost first */
export interface ReorderIters extends At {
  readonly kind: 'reorder'
  readonly loops: readonly string[]
}
/** `fuse (i, j) -> ij` on iterators */
export interface FuseIters extends At {
  readonly kind: 'fuse'
  readonly loops: readonly string[]
  readonly into?: string | undefined
}
/** `attach k to e`: iterator k enters its axis by the coordinate of e */
export interface AttachIter extends At {
  readonly kind: 'attach'
  readonly loop: string
  readonly to: string
}

/** Iterators are named as in loops: `i`, or `iteration.i` where several iterations have one. */
export type CoordStep = AsStep | ReorderIters | FuseIters | AttachIter

/** Documentation that a test runs: `steps` turn the only kernel of `before` into one that prints as `after`. */
export interface CoordExample {
  readonly before: string
  readonly steps: string
  readonly after: string
}
