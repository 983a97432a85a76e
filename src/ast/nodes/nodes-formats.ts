/** Formats: descriptions of axes with maps of coordinates, and compositions of other formats. */
import type { Ident, Item, Node } from './nodes-base.ts'
import type { Element, Expr, FormatUse, ListName } from './nodes-exprs.ts'
import type { AxisDecl } from './nodes-kernels.ts'

/** A format: a description of stored coordinates, or a distribution of them over other formats. */
export interface Format extends Item {
  readonly kind: 'format'
  readonly name: Ident
  readonly params: readonly FormatParam[]
  readonly over: readonly ListName[]
  readonly body: Description | Composition
}
export interface Description {
  readonly kind: 'description'
  readonly sorts: readonly Sort[]
  readonly axes: readonly AxisDecl[]
  readonly map: CoordMap
  readonly inverse: CoordMap
  readonly mask: Mask | null
  readonly where: Holds | null
}
/** At least one rule. */
export interface Composition {
  readonly kind: 'composition'
  readonly rules: readonly Rule[]
}

export const FORMAT_PARAM_TYPES = ['size', 'real', 'list', 'set'] as const
/**
 * `b`, `b = 16`, `t: real`, `t: real = 0.5`, `rows: list`, `m: set`, `w: size` (computed from the data unless given).
 */
export interface FormatParam extends Node {
  readonly name: Ident
  readonly type: 'integer' | (typeof FORMAT_PARAM_TYPES)[number]
  /** Only for integers and reals. */
  readonly default: Expr | null
}
/** `sort dim by key within w -> (place, at)`. */
export interface Sort extends Item {
  readonly kind: 'sort'
  readonly dim: Element
  readonly by: Expr
  readonly within: Expr | null
  readonly place: Ident
  readonly at: Ident
}
/** `mask name`: one bit for each position of the axes, set if the tensor stores an element there. */
export interface Mask extends Item {
  readonly kind: 'mask'
  readonly name: Ident
}
/** `where (cond)`: the coordinates that a format can hold. */
export interface Holds extends Item {
  readonly kind: 'where'
  readonly cond: Expr
}
/** `map (from) -> (to)` or `inverse (from) -> (to)`. */
export interface CoordMap extends Item {
  readonly kind: 'map' | 'inverse'
  readonly from: readonly ListName[]
  readonly to: readonly Expr[]
}

export type Rule = PartRule | PartitionRule | BucketRule
/** `part name = blocks(16) where (cond)`. */
export interface PartRule extends Item {
  readonly kind: 'part'
  readonly name: Ident | null
  readonly use: FormatUse
  readonly where: Expr | null
}
/** `partition j into c as p { rules }`; at least one rule. */
export interface PartitionRule extends Item {
  readonly kind: 'partition'
  readonly dim: Element
  readonly into: Expr
  readonly as: Ident | null
  readonly rules: readonly Rule[]
}
/** `bucket i by length into 1, 2 .. 2^k as width split { rules }`; at least one rule and one dimension. */
export interface BucketRule extends Item {
  readonly kind: 'bucket'
  readonly dims: readonly Element[]
  readonly widths: readonly Width[]
  readonly as: Ident
  readonly split: boolean
  readonly rules: readonly Rule[]
}
/** `value`, or `value ^ power`; `doubling`: written after `..`, never for the first width. */
export interface Width extends Node {
  readonly value: Expr
  readonly power: Expr | null
  readonly doubling: boolean
}
