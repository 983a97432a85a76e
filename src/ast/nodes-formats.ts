/** Formats: descriptions of axes with maps of coordinates, and compositions of other formats. */

import type { Ident, Item, Node } from './nodes-base.ts'
import type { Element, Expr, FormatUse, ListName } from './nodes-exprs.ts'
import type { AxisDecl } from './nodes-kernels.ts'

/** How coordinates are stored, or which of them go to which other formats. */
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
/** One rule at least. */
export interface Composition {
  readonly kind: 'composition'
  readonly rules: readonly Rule[]
}

export const FORMAT_PARAM_TYPES = ['size', 'real', 'list', 'set'] as const
/** `b`, `b = 16`, `t: real`, `t: real = 0.5`, `rows: list`, `m: set`, `w: size` (measured, unless given). */
export interface FormatParam extends Node {
  readonly name: Ident
  readonly type: 'integer' | (typeof FORMAT_PARAM_TYPES)[number]
  /** Only of integers and reals. */
  readonly default: Expr | null
}
/** `sort dim by key within w -> (place, at)`. */
export interface Sort extends Item {
  readonly dim: Element
  readonly by: Expr
  readonly within: Expr | null
  readonly place: Ident
  readonly at: Ident
}
/** `mask name`: a bit for each place of the axes says whether the tensor holds an element there. */
export interface Mask extends Item {
  readonly name: Ident
}
/** `where (cond)`: what a format can hold. */
export interface Holds extends Item {
  readonly cond: Expr
}
/** `map (from) -> (to)` or `inverse (from) -> (to)`. */
export interface CoordMap extends Item {
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
/** `partition j into c as p { rules }`; one rule at least. */
export interface PartitionRule extends Item {
  readonly kind: 'partition'
  readonly dim: Element
  readonly into: Expr
  readonly as: Ident | null
  readonly rules: readonly Rule[]
}
/** `bucket i by length into 1, 2 .. 2^k as width split { rules }`; one rule and one dimension at least. */
export interface BucketRule extends Item {
  readonly kind: 'bucket'
  readonly dims: readonly Element[]
  readonly widths: readonly Width[]
  readonly as: Ident
  readonly split: boolean
  readonly rules: readonly Rule[]
}
/** `value`, or `value ^ power`; `doubling`: after `..`. The first is not. */
export interface Width extends Node {
  readonly value: Expr
  readonly power: Expr | null
  readonly doubling: boolean
}
