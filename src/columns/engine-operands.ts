/** Operands of an engine; expressions are over the names of a frame. */
import type { Expr } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import type { Dtype } from '../ir/values/dtype.ts'

/** A sort key whose values are from 0 to `extent` - 1. */
export interface SortKey {
  readonly expr: Expr
  readonly extent: number
}

/** Starts of runs of entries: the first, those where a key changes, and those where `cut` is 1. */
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
  /** Keys that begin with those of `within`: an entry that repeats the previous tuple is cut; `null`: none. */
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

export interface StoredValues<C> {
  /** By entry of the source; `null`: all values are 1. */
  readonly stored: C | null
  readonly dtype: Dtype
  readonly fill: number
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
}

export interface PaddedSegments<C> {
  readonly indices: C
  /** The first segment without an element, or −1. */
  readonly empty: number
}

/** The tensor's data that queries read, in addition to the queried coordinates. */
export interface Scope<C> {
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

export type GroupReduction = 'entries' | 'tuples' | 'minimum'

/** A count or rank of distinct tuples `of` in each group. */
export interface CountQuery extends GroupQuery {
  readonly of: readonly Expr[]
}

// Sort elision: orders that the known order of the entries implies, so that no column needs to be read.

/** An order of entries: lexicographic in these expressions. */
export type Order = readonly Expr[]

/** A column that ascends with `of` among entries with the same `by`. */
export interface Monotone {
  readonly column: readonly Expr[]
  readonly of: readonly Expr[]
}

/** The number of leading `keys` by which the entries are known to be lexicographically sorted. */
export function sortedPrefix(
  keys: readonly Expr[],
  order: Order,
  monotone: ReadonlyMap<string, Monotone>,
  positive: (size: Expr) => boolean,
): number {
  const isSame = (a: Expr | undefined, b: Expr): boolean =>
    a !== undefined && (a === b || keyOf(a) === keyOf(b))
  /** Expressions of `order` covered so far; a monotone function of a covered one is in order, too. */
  let prefix = 0
  for (const [n, key] of keys.entries()) {
    let x = key
    while (!isSame(order[prefix], x) && x.kind === 'binary' && x.op === 'div' && positive(x.b)) x = x.a
    if (isSame(order[prefix], x)) {
      if (x === key) prefix++
      continue
    }
    const column = x.kind === 'var' ? monotone.get(x.name) : undefined
    const groupOrder = column && [...column.column, ...column.of]
    if (!column || column.column.length !== prefix || !groupOrder?.every((e, k) => isSame(order[k], e)))
      return n
  }
  return keys.length
}
