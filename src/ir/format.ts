/**
 * Formats as values: the typed descriptions that `as` instantiates and that conversions are generated from.
 *
 * A `Format` says how coordinates are stored; a `Composition` says which part of a tensor goes to which format.
 * What depends on the stored coordinates themselves (a row's length, an element's rank in its row) is a *query*:
 * a named column with one value for each stored coordinate, which maps and selections use like any variable
 * (attribute queries and counters as in Chou, Kjolstad and Amarasinghe, PLDI 2020, sections 3 and 5).
 */
import type { Span } from '../ast/diagnostic.ts'
import { isDense, type StoredAxis } from './axis.ts'
import type { CoordinateList } from './coordinate-lists.ts'
import type { Expr } from './expr.ts'
import type { PartTree } from './part-tree.ts'
import type { Query } from './queries.ts'

/**
 * `integer` and `real`: constants. `list`: ascending integers, the boundaries of segments. `set`: coordinates of
 * the dimensions that the format is over (a mask). Lists and sets come with the data, under their names.
 */
export type FormatParamKind = 'integer' | 'real' | 'list' | 'set'

/** `measured`: an integer that is found while a tensor is brought into the format, unless given. */
export interface FormatParam {
  readonly name: string
  readonly kind: FormatParamKind
  /** Over the parameters before it; `null` where an argument must be given. */
  readonly default: Expr | null
  readonly measured: boolean
  readonly span?: Span | undefined
}

/**
 * `sort i by key within w -> (place, at)`: a permutation of all coordinates of a dimension (stored or not). In
 * each window of `within` coordinates (`null`: all of them), ascending by key, ties by coordinate. Maps use
 * `place[i]` (a query), inverses `at[x]` (a load of the table `at`).
 */
export interface Sort {
  readonly place: string
  readonly at: string
  /** A dimension, or a dense axis: its coordinates before the sort, which `of` gives, over dimensions and the format's queries. */
  readonly dim: string
  readonly of: Expr
  /** How many coordinates there are. */
  readonly extent: Expr
  /** Over `dim`, parameters and `queries`, whose `by` are over `dim` alone: a coordinate with nothing counts 0. */
  readonly key: Expr
  readonly queries: readonly Query[]
  readonly within: Expr | null
  readonly span?: Span | undefined
}

/** All expressions are i32. Variables are parameters and, by place, what each field says. */
export interface Format {
  readonly kind: 'format'
  readonly name: string
  readonly params: readonly FormatParam[]
  /** The dimensions that the format replaces. */
  readonly over: readonly string[]
  readonly sorts: readonly Sort[]
  /** What `map` and `where` ask of the coordinates that the format holds; in order. */
  readonly queries: readonly Query[]
  /**
   * Parents first, otherwise as declared. In extents and widths a name of `over` is the extent of that
   * dimension, and `segmentsOf` a list parameter the number of its segments. `order` has the declared order,
   * which `map` and `inverse` follow.
   */
  readonly axes: readonly StoredAxis[]
  /** In the order of the text; `map` has nothing for them. */
  readonly lists: readonly CoordinateList[]
  readonly order: readonly string[]
  /** One coordinate for each axis of `order`; a name of `over` is the coordinate on that dimension. */
  readonly map: readonly Expr[]
  /** One coordinate for each name of `over`; an axis name is the coordinate on that axis. Loads of tables and lists. */
  readonly inverse: readonly Expr[]
  /** The name of its mask (`FormatInstance.mask`); none: values alone are kept. */
  readonly mask?: string | undefined
  /** Coordinates that it can hold (bool, over `over` and `queries`); `null`: all. */
  readonly where: Expr | null
  /**
   * The text claims these of every segment: `full` (no coordinate absent), `compact` (no padding). Checked, unless it
   * `follows` from what a composition asks of the part's elements.
   */
  readonly claims: readonly {
    readonly axis: string
    readonly claim: 'full' | 'compact'
    readonly follows?: boolean
  }[]
  readonly span?: Span | undefined
}

/** A format with arguments, over the parameters of what encloses it; a list or set is passed on by name. */
export interface FormatUse {
  readonly format: OrderedFormat
  readonly args: readonly Expr[]
  readonly span?: Span | undefined
}

export type PartRule =
  | {
      /**
       * What `where` selects of the scope, and the format's own `where` admits. `null` on both: the rest, which
       * only the last rule of a list can be.
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
      /** `partition j into c`: c ranges of `ceildiv(extent, c)` coordinates, each with parts of its own. */
      readonly kind: 'partition'
      readonly dim: string
      readonly into: Expr
      /** Name under which `parts` know the number of the range; `null`: none. */
      readonly as: string | null
      readonly parts: readonly PartRule[]
      readonly span?: Span | undefined
    }
  | {
      /**
       * `bucket i by length into w1, w2, …`: segments (all with the same `dims`) by their number of stored
       * coordinates: to the first width that holds them. `split`: longer ones are cut into pieces of the last
       * width, and the last piece goes by its own length; without it they are refused.
       */
      readonly kind: 'bucket'
      readonly dims: readonly string[]
      /** Ascending. `doubling`: from the width before, doubled as often as it takes up to this one. */
      readonly widths: readonly {
        readonly value: Expr
        readonly power: Expr | null
        readonly doubling: boolean
      }[]
      /** Name under which `parts` know the bucket's width. */
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

/** For tensors of one order, which `over` says. */
export type OrderedFormat = Format | Composition

/** A format whose text has a list of dimensions: one for each order of tensors. */
export interface FormatFamily {
  readonly kind: 'family'
  readonly name: string
  readonly params: readonly FormatParam[]
  /** As written; one of them is a list. */
  readonly over: readonly { readonly name: string; readonly list: boolean }[]
  /**
   * Written out; the same object for the same order.
   * @throws SptError `format/order`, and `check/…` where the text makes no sense for this order
   */
  readonly ofOrder: (order: number) => OrderedFormat
  readonly span?: Span | undefined
}

export type AnyFormat = OrderedFormat | FormatFamily

/** The format for tensors of an order. @throws SptError as `FormatFamily.ofOrder` */
export const ofOrder = (format: AnyFormat, order: number): OrderedFormat =>
  format.kind === 'family' ? format.ofOrder(order) : format

// Instances: formats with their arguments over the axes of one kernel --------------------------------------------

/**
 * An i32 array that maps and inverse maps load by its `name`: the `at` of a sort, a list that comes with the data, or one
 * of the format (`positions`). Its fill is the extent of what it names. `source` is the `at` as in `sorts`, the list's name
 * among the given, or its axis.
 */
export interface Table {
  readonly name: string
  readonly of: 'sort' | 'list' | 'positions'
  readonly source: string
  /** Axes of the format that it is over; none: it is one array. */
  readonly under: readonly string[]
  /** Under each position of these. */
  readonly length: Expr
  readonly fill: Expr
}

/** The axes that stand in for `over`, and how coordinates go between the two. Expressions are over the old axes' names. */
export interface FormatInstance {
  /** As written, for reports: `bsr(16)`. */
  readonly text: string
  /** Arguments by parameter name, for schedules (`p.width`); integers and reals that are constants. */
  readonly constants: ReadonlyMap<string, number>
  /** Parents first. Extents and widths are over the kernel's sizes and `measured`. */
  readonly axes: readonly StoredAxis[]
  readonly lists: readonly CoordinateList[]
  /** Names of the new axes in the order of `map`. */
  readonly order: readonly string[]
  /** Format axis name → name in the kernel. */
  readonly names: ReadonlyMap<string, string>
  /**
   * As the format's text calls what it keeps beside axes (orders, lists, its mask) → name in the kernel. Where a list or set
   * among the data has that name, instead of the text's another one (`held_2`), the same in every kernel.
   */
  readonly beside: ReadonlyMap<string, string>
  readonly sorts: readonly Sort[]
  readonly queries: readonly Query[]
  /** Over the names of the old axes and queries: one coordinate for each axis of `order`. */
  readonly map: readonly Expr[]
  /** Over the names of the new axes: one coordinate for each old axis. */
  readonly inverse: readonly Expr[]
  /** What it can hold, where that asks nothing of the data; the tree has it in any case. */
  readonly where: Expr | null
  readonly tables: readonly Table[]
  /**
   * An array of bits, one for each position of the values, that tells elements from padding: whoever asks it may visit
   * padding whatever is computed there. Not among the `tables`, which maps load before there are positions.
   */
  readonly mask?: string | undefined
  readonly claims: Format['claims']
  /** Size parameters that are found while a tensor is brought into the format. */
  readonly measured: readonly { readonly name: string; readonly span?: Span | undefined }[]
}

/** Dense axes that are claimed full: where the tensor holds an element, it holds those at all coordinates on these, within it. */
export const filledAxes = ({
  axes,
  claims,
}: Pick<FormatInstance, 'axes' | 'claims'>): readonly StoredAxis[] =>
  axes.filter((a) => isDense(a) && claims.some((c) => c.axis === a.name && c.claim === 'full'))

export interface PartInstance {
  /** Unique among the parts: `p0_w4`, `bsr`; empty where there is one part. */
  readonly label: string
  readonly instance: FormatInstance
}

/** A format or composition over the axes of one kernel: `as` in full. */
export interface Instance {
  readonly text: string
  readonly over: readonly StoredAxis[]
  readonly tree: PartTree
  /** In the order in which their iterations run. */
  readonly parts: readonly PartInstance[]
  /** List and set parameters that the data bring, by name. */
  readonly given: readonly { readonly name: string; readonly kind: 'list' | 'set' }[]
}
