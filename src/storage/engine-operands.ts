/**
 * Operands of an engine: sort keys, heads of runs, segments, bitmaps, what queries and stored values need beside
 * coordinates. Expressions are over the names of a frame.
 */
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'

/** Values of `expr` are from 0 to `extent` - 1. */
export interface SortKey {
  readonly expr: Expr
  readonly extent: number
}

/** Where runs of entries begin: at the first, where one of `keys` is not that of the entry before, where `cut` is 1. */
export interface Starts {
  readonly keys: readonly Expr[]
  readonly cut: Expr | null
}

export type Unmeasured = Pick<SortKey, 'expr'> & Partial<SortKey>

export interface Cuts {
  readonly within: readonly Expr[]
  readonly starts: Starts
  /** 0: no number of runs. */
  readonly width: number
  /** Also where none of these changes, which come after those of `within`. */
  readonly again: readonly Expr[] | null
}

/** Segments of coordinates under parent positions; `null`: of one. */
export interface Segments {
  readonly parent: Expr | null
  readonly parents: number
  readonly coordinate: Expr
  readonly extent: number
}

export interface Bitmap {
  readonly parent: Expr
  readonly parents: number
  readonly coordinate: Expr
  /** Of 32 bits, under each parent. */
  readonly words: number
  readonly label: string
}

/** What a buffer is filled with. */
export interface Stored<C> {
  /** By entry of the source; `null`: ones. */
  readonly stored: C | null
  readonly dtype: Dtype
  readonly fill: number
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
}

/** Segments that are filled up with their last elements. */
export interface Repeated<C> {
  readonly indices: C
  /** The first segment without an element; -1: every one has some. */
  readonly empty: number
}

/** What queries need besides coordinates. */
export interface Scope<C> {
  /** In the order of the dimensions. */
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** By entry of the source, of all that is at its coordinate; `null` in a pattern. */
  readonly values: C | null
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
  /** By sort: the place of each coordinate. */
  readonly places: ReadonlyMap<string, C>
  readonly lists: ReadonlyMap<string, C>
  /** Sets as trees: the segments of each coordinate of the first dimension, then the others level by level. */
  readonly sets: ReadonlyMap<string, readonly { readonly indptr: C; readonly indices: C }[]>
}

/** A column of groups that agree in `by`. */
export interface Grouped {
  readonly name: string
  readonly by: readonly Expr[]
}

/** Of an expression, which is not negative, in each group. */
export interface Reduced extends Grouped {
  readonly of: Expr
}

/** Of different tuples `of` in each group. */
export interface Counting extends Grouped {
  readonly of: readonly Expr[]
}
