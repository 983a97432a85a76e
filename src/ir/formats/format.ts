/**
 * Formats as values: the typed descriptions that `as` instantiates and that conversions are generated from.
 *
 * A `Format` defines how coordinates are stored; a `Composition` defines which part of a tensor goes to which format.
 * Properties of the stored coordinates (a row's length, an element's rank in its row) are *queries*: named columns with
 * one value for each stored coordinate, which maps and selections use like variables (attribute queries and counters as
 * in Chou, Kjolstad and Amarasinghe, PLDI 2020, sections 3 and 5).
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { isDense, type StoredAxis } from '../coordinates/axis.ts'
import type { CoordinateList } from '../coordinates/derived-names.ts'
import type { Expr } from '../expressions/expr.ts'
import type { PartTree } from './part-tree.ts'
import type { Query } from './queries.ts'

/**
 * `integer` and `real`: constants. `list`: ascending integers, the boundaries of segments. `set`: coordinates of
 * the dimensions that the format is over (a mask). Lists and sets come with the data, under their names.
 */
export type FormatParamKind = 'integer' | 'real' | 'list' | 'set'

/** `measured`: an integer that is computed while a tensor is converted to the format, unless given. */
export interface FormatParam {
  readonly name: string
  readonly kind: FormatParamKind
  /** Over the preceding parameters; `null` if an argument is required. */
  readonly default: Expr | null
  readonly measured: boolean
  readonly span?: Span | undefined
}

/**
 * `sort i by key within w -> (place, at)`: a permutation of all coordinates of a dimension (stored or not). Each window
 * of `within` coordinates (`null`: all of them) is sorted in ascending order of the key; ties keep the order of
 * coordinates. Maps use `place[i]` (a query), inverses `at[x]` (a load of the table `at`).
 */
export interface Sort {
  readonly place: string
  readonly at: string
  /**
   * The sorted dimension or dense axis; `of` is the coordinate on it before the sort, over dimensions and the format's
   * queries.
   */
  readonly dim: string
  readonly of: Expr
  /** Number of sorted coordinates. */
  readonly extent: Expr
  /**
   * Sort key over `dim`, parameters and `queries`, whose `by` are over `dim` alone; 0 for coordinates without elements.
   */
  readonly key: Expr
  readonly queries: readonly Query[]
  readonly within: Expr | null
  readonly span?: Span | undefined
}

/** All expressions are i32. Variables are parameters and, in addition, those listed at each field. */
export interface Format {
  readonly kind: 'format'
  readonly name: string
  readonly params: readonly FormatParam[]
  /** The dimensions that the format replaces. */
  readonly over: readonly string[]
  readonly sorts: readonly Sort[]
  /** Queries used by `map` and `where`, in order, over the coordinates that the format stores. */
  readonly queries: readonly Query[]
  /**
   * Parents first, otherwise as declared. In extents and widths a name of `over` is the extent of that dimension, and
   * `segmentsOf` a list parameter the number of its segments. `order` has the declared order, which `map` and `inverse`
   * follow.
   */
  readonly axes: readonly StoredAxis[]
  /** In declaration order; `map` has no coordinates for them. */
  readonly lists: readonly CoordinateList[]
  readonly order: readonly string[]
  /** One coordinate for each axis of `order`; a name of `over` is the coordinate on that dimension. */
  readonly map: readonly Expr[]
  /** One coordinate for each name of `over`; an axis name is the coordinate on that axis. Loads of tables and lists. */
  readonly inverse: readonly Expr[]
  /** The name of its mask (`FormatInstance.mask`); without one only values are stored. */
  readonly mask?: string | undefined
  /** Condition (bool, over `over` and `queries`) on the coordinates that the format can hold; `null`: all. */
  readonly where: Expr | null
  /**
   * Claims that the declaration makes about every segment: `full` (no coordinate absent), `compact` (no padding).
   * Checked, unless the claim `follows` from a composition's condition on the part's elements.
   */
  readonly claims: readonly {
    readonly axis: string
    readonly claim: 'full' | 'compact'
    readonly follows?: boolean
  }[]
  readonly span?: Span | undefined
}

/**
 * A format with arguments, over the parameters of the enclosing format. A list or set is passed on by its
 * name.
 */
export interface FormatUse {
  readonly format: OrderedFormat
  readonly args: readonly Expr[]
  readonly span?: Span | undefined
}

export type PartRule =
  | {
      /**
       * The elements of the scope selected by `where` and admitted by the format's own `where`. `null` in both: the
       * remaining elements, allowed for the last rule of a list only.
       */
      readonly kind: 'part'
      /** `null`: the format's name. */
      readonly name: string | null
      readonly use: FormatUse
      readonly queries: readonly Query[]
      readonly where: Expr | null
      readonly span?: Span | undefined
    }
  | {
      /** `partition j into c`: c ranges of `ceildiv(extent, c)` coordinates, each with its own parts. */
      readonly kind: 'partition'
      readonly dim: string
      readonly into: Expr
      /** Name of the range's number in `parts`; `null`: none. */
      readonly as: string | null
      readonly parts: readonly PartRule[]
      readonly span?: Span | undefined
    }
  | {
      /**
       * `bucket i by length into w1, w2, …`: distributes segments (elements with the same `dims`) by their number of
       * stored coordinates, to the first width that holds them. `split`: longer segments are cut into pieces of the
       * last width, and the last piece is distributed by its own length; without it they are rejected.
       */
      readonly kind: 'bucket'
      readonly dims: readonly string[]
      /** Ascending. `doubling`: the previous width, doubled repeatedly up to this one. */
      readonly widths: readonly {
        readonly value: Expr
        readonly power: Expr | null
        readonly doubling: boolean
      }[]
      /** Name of the bucket's width in `parts`. */
      readonly as: string
      readonly split: boolean
      readonly parts: readonly PartRule[]
      readonly span?: Span | undefined
    }

/** Parts that hold each coordinate of their scope exactly once. */
export interface Composition {
  readonly kind: 'composition'
  readonly name: string
  readonly params: readonly FormatParam[]
  readonly over: readonly string[]
  readonly parts: readonly PartRule[]
  readonly span?: Span | undefined
}

/** A format for tensors of one order, the length of `over`. */
export type OrderedFormat = Format | Composition

/** A format declared over a list of dimensions: one format for each order of tensors. */
export interface FormatFamily {
  readonly kind: 'family'
  readonly name: string
  readonly params: readonly FormatParam[]
  /** As written; one entry is a list of dimensions. */
  readonly over: readonly { readonly name: string; readonly list: boolean }[]
  /**
   * The format for tensors of this order; the same object on every call. @throws SptError `format/order`, or `check/…`
   * if the declaration is invalid for this order
   */
  readonly withOrder: (order: number) => OrderedFormat
  readonly span?: Span | undefined
}

export type AnyFormat = OrderedFormat | FormatFamily

/** The format for tensors of an order. @throws SptError as `FormatFamily.withOrder` */
export const formatOfOrder = (format: AnyFormat, order: number): OrderedFormat =>
  format.kind === 'family' ? format.withOrder(order) : format

// Instances: formats with their arguments over the axes of one kernel --------------------------------------------

/**
 * An i32 array that maps and inverse maps load by its `name`: the `at` of a sort, a list that comes with the data, or a
 * list of the format (`positions`). Its fill value is the extent of the dimension that it indexes. `source` is the `at`
 * in `sorts`, the name of the given list, or the list's axis.
 */
export interface Table {
  readonly name: string
  readonly kind: 'sort' | 'list' | 'positions'
  readonly source: string
  /** Axes of the format that the table is indexed by; empty for a single array. */
  readonly under: readonly string[]
  /** Elements under each position of these axes. */
  readonly length: Expr
  readonly fill: Expr
}

/**
 * The axes that replace `over`, and the maps of coordinates in both directions. Expressions are over the names of the
 * old axes.
 */
export interface FormatInstance {
  /** As written, for reports: `bsr(16)`. */
  readonly text: string
  /** Constant integer and real arguments by parameter name, for schedules (`p.width`). */
  readonly constants: ReadonlyMap<string, number>
  /** Parents first. Extents and widths are over the kernel's sizes and `measured`. */
  readonly axes: readonly StoredAxis[]
  readonly lists: readonly CoordinateList[]
  /** Names of the new axes in the order of `map`. */
  readonly order: readonly string[]
  /** Format axis name → name in the kernel. */
  readonly names: ReadonlyMap<string, string>
  /**
   * Names of the orders, lists and mask in the format's declaration → names in the kernel. If a list or set
   * of the data already has that name, the array of the format is renamed (`held_2`), identically in every
   * kernel.
   */
  readonly arrayNames: ReadonlyMap<string, string>
  readonly sorts: readonly Sort[]
  readonly queries: readonly Query[]
  /** Over the names of the old axes and queries: one coordinate for each axis of `order`. */
  readonly map: readonly Expr[]
  /** Over the names of the new axes: one coordinate for each old axis. */
  readonly inverse: readonly Expr[]
  /**
   * Condition on the coordinates that it can hold, if it does not depend on the data; the part tree always includes it.
   */
  readonly where: Expr | null
  readonly tables: readonly Table[]
  /**
   * Name of an array of bits, one per position of the values, that distinguishes elements from padding. Kernels that
   * test it may visit padding whatever they compute. Not among the `tables`, which maps load before positions exist.
   */
  readonly mask?: string | undefined
  readonly claims: Format['claims']
  /** Size parameters computed while a tensor is converted to the format. */
  readonly measured: readonly { readonly name: string; readonly span?: Span | undefined }[]
}

/** Properties proved of a format for every tensor, which need not be checked on data. */
export interface Proved {
  /** The inverse undoes the map, in exact integers, for coordinates within their extents. */
  readonly inverse: boolean
  /** The map stays within the extents of the axes. */
  readonly range: boolean
}

/** Dense axes that are claimed full: if the tensor stores an element, it stores all coordinates on these axes. */
export const fullAxes = ({ axes, claims }: Pick<FormatInstance, 'axes' | 'claims'>): readonly StoredAxis[] =>
  axes.filter((a) => isDense(a) && claims.some((c) => c.axis === a.name && c.claim === 'full'))

export interface PartInstance {
  /** Unique among the parts: `p0_w4`, `bsr`; empty if there is one part. */
  readonly label: string
  readonly instance: FormatInstance
}

/** A format or composition instantiated over the axes of one kernel. */
export interface Instance {
  readonly text: string
  readonly over: readonly StoredAxis[]
  readonly tree: PartTree
  /** In the order in which their iterations run. */
  readonly parts: readonly PartInstance[]
  /** List and set parameters that come with the data, by name. */
  readonly given: readonly { readonly name: string; readonly kind: 'list' | 'set' }[]
}
