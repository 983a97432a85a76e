/** Formats as values: the typed description that `as` instantiates and that conversions are generated from. */
import type { Span } from '../ast/diagnostic.ts'
import type { StoredAxis } from './axis.ts'
import type { Expr } from './expr.ts'

/** A constant; `measured`: found while a tensor is brought into the format, unless given. */
export interface FormatParam {
  readonly name: string
  /** Over the parameters before it; `null` where an argument must be given. */
  readonly default: Expr | null
  readonly measured: boolean
  readonly span?: Span | undefined
}

/** All expressions are i32. Variables are parameters and, by place, what each field says. */
export interface Format {
  readonly name: string
  readonly params: readonly FormatParam[]
  /** The dimensions that the format replaces. */
  readonly over: readonly string[]
  /**
   * Parents first, otherwise as declared. In extents and widths a name of `over` is the extent of that
   * dimension. `order` has the declared order, which `map` and `inverse` follow.
   */
  readonly axes: readonly StoredAxis[]
  readonly order: readonly string[]
  /** One coordinate for each axis of `order`; a name of `over` is the coordinate on that dimension. */
  readonly map: readonly Expr[]
  /** One coordinate for each name of `over`; an axis name is the coordinate on that axis. */
  readonly inverse: readonly Expr[]
  readonly span?: Span | undefined
}
