/**
 * Operands of an engine: sort keys, starts of runs, segments, masks, and inputs of queries and stored values.
 * Expressions are over the names of a frame.
 */

import type { Expr } from '../ir/expressions/expr.ts'
import type { Dtype } from '../ir/values/dtype.ts'

/** A sort key whose values are from 0 to `extent` - 1. */
export interface SortKey {
  readonly expr: Expr
  readonly extent: number
}

/**
 * Starts of runs of entries: the first entry, entries where a key differs from the previous entry's key, and
 * entries where `cut` is 1.
 */
export interface Starts {
  readonly keys: readonly Expr[]
  readonly cut: Expr | null
}

export type OpenSortKey = Pick<SortKey, 'expr'> & Partial<SortKey>

export interface CutOptions {
  readonly within: readonly Expr[]
  readonly starts: Starts
  /** Runs between two cuts; 0: no limit. */
  readonly width: number
  /**
   * Keys of the complete tuple, which begin with those of `within`: an entry that repeats the previous tuple
   * is cut too. `null`: repeated tuples are not cut.
   */
  readonly tuple: readonly Expr[] | null
}

/** Segments of coordinates under parent positions; `parent` is `null` for a single segment. */
export interface Segments {
  readonly parent: Expr | null
  readonly parents: number
  readonly coordinate: Expr
  readonly extent: number
}

export interface BitmapOptions {
  readonly parent: Expr
  readonly parents: number
  readonly coordinate: Expr
  /** 32-bit words per parent. */
  readonly words: number
  readonly label: string
}

/** Values to be stored in a buffer. */
export interface StoredValues<C> {
  /** By entry of the source; `null`: all values are 1. */
  readonly stored: C | null
  readonly dtype: Dtype
  readonly fill: number
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
}

/** Segments padded with their last elements. */
export interface PaddedSegments<C> {
  readonly indices: C
  /** The first segment without an element, or −1. */
  readonly empty: number
}

/** The tensor's data that queries read, in addition to the queried coordinates. */
export interface Scope<C> {
  /** The tensor's dimensions, in order. */
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** Values by entry of the source, summed over equal coordinates; `null` for a pattern. */
  readonly values: C | null
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
  /** The place of each coordinate, by sort. */
  readonly places: ReadonlyMap<string, C>
  readonly lists: ReadonlyMap<string, C>
  /** Sets as trees: segments under each coordinate of the first dimension, then the remaining levels. */
  readonly sets: ReadonlyMap<string, readonly { readonly indptr: C; readonly indices: C }[]>
}

/** The name of a query's column, and the keys of its groups: entries that agree in `by`. */
export interface GroupQuery {
  readonly name: string
  readonly by: readonly Expr[]
}

/** A reduction of a non-negative expression in each group. */
export interface MinimumQuery extends GroupQuery {
  readonly of: Expr
}

/** A count or rank of distinct tuples `of` in each group. */
export interface CountQuery extends GroupQuery {
  readonly of: readonly Expr[]
}
