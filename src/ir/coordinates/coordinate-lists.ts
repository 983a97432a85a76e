/**
 * Coordinate lists of formats: `list ko = sparse_fixed(go, k, 64)` stores coordinates without values. Tiles under `go`
 * share it: an axis over its positions has one slot per listed coordinate, and inverse maps load the coordinate,
 * `ko[q]`. Values can therefore be stored in any order of the surrounding axes.
 *
 * In kernels, a list is a table over its ancestor axes and its positions: `ko[io, go, q]` is addressed like an element
 * of any buffer over them. Its array has the layout of the level: `width` ascending coordinates under each position of
 * its parent.
 */

import { type Expr, type Load, lt } from '../expressions/expr.ts'
import { walkExpr } from '../expressions/expr-tree.ts'
import { hasHoles, type PaddedAxis } from './axis.ts'

export interface CoordinateList {
  /** The level that the list stores; its parent is an axis of the format. */
  readonly axis: PaddedAxis
  /** The axes from a root down to its parent: the leading indices of a load, before the position. */
  readonly under: readonly string[]
  /** The coordinate of an element on the list's axis, as in a format's map. */
  readonly coordinate: Expr
  /** Name of the query for that coordinate's position in the list; `null` if the map does not use it. */
  readonly position: string | null
}

/** Loads of lists in an expression, each with its list. */
export function loadsOfLists(
  e: Expr,
  lists: readonly CoordinateList[],
): readonly { readonly load: Load; readonly list: CoordinateList }[] {
  const out: { load: Load; list: CoordinateList }[] = []
  if (lists.length === 0) return out
  walkExpr(e, (x) => {
    const list = x.kind === 'load' ? lists.find((l) => l.axis.name === x.buffer) : undefined
    if (x.kind === 'load' && list) out.push({ load: x, list })
  })
  return out
}

/** Conditions for a coordinate to exist at the loaded position: padding without a coordinate stores the extent. */
export const existenceConditions = (load: Expr, { axis }: CoordinateList): readonly Expr[] =>
  hasHoles(axis) ? [lt(load, axis.extent)] : []
