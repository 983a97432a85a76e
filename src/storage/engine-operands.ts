/**
 * Operands of an engine: sort keys, starts of runs, segments, masks, and inputs of queries and stored values.
 * Expressions are over the names of a frame.
 */
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'

/** Values of `expr` are from 0 to `extent` - 1. */
export interface SortKey {
  readonly expr: Expr
  readonly extent: number
}

/**
 * Starts of runs of entries: at the first entry, where a key differs from the previous entry's, and where `cut` is 1.
 */
export interface Starts {
  readonly keys: readonly Expr[]
  readonly cut: Expr | null
}

export type Unmeasured = Pick<SortKey, 'expr'> & Partial<SortKey>

export interface Cuts {
  readonly within: readonly Expr[]
  readonly starts: Starts
  /** 0: no limit. */
  readonly width: number
  /** Also cut if none of these keys changes; they follow those of `within`. */
  readonly again: readonly Expr[] | null
}

/** Segments of coordinates under parent positions; `parent` is `null` for a single segment. */
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
  /** 32-bit words per parent. */
  readonly words: number
  readonly label: string
}

/** Values to be stored in a buffer. */
export interface Stored<C> {
  /** By entry of the source; `null`: ones. */
  readonly stored: C | null
  readonly dtype: Dtype
  readonly fill: number
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
}

/** Segments padded with their last elements. */
export interface Repeated<C> {
  readonly indices: C
  /** The first segment without an element, or −1. */
  readonly empty: number
}

/** Inputs of queries other than the queried coordinates. */
export interface Scope<C> {
  /** In the order of the dimensions. */
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** By entry of the source, summed over equal coordinates; `null` for a pattern. */
  readonly values: C | null
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
  /** The place of each coordinate, by sort. */
  readonly places: ReadonlyMap<string, C>
  readonly lists: ReadonlyMap<string, C>
  /** Sets as trees: segments under each coordinate of the first dimension, then the remaining levels. */
  readonly sets: ReadonlyMap<string, readonly { readonly indptr: C; readonly indices: C }[]>
}

/** A new column, computed over groups of entries that agree in `by`. */
export interface Grouped {
  readonly name: string
  readonly by: readonly Expr[]
}

/** A reduction of a non-negative expression in each group. */
export interface Reduced extends Grouped {
  readonly of: Expr
}

/** A count or rank of distinct tuples `of` in each group. */
export interface Counting extends Grouped {
  readonly of: readonly Expr[]
}
