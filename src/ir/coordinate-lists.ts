/**
 * Lists of formats: `list ko = sparse_fixed(go, k, 64)` holds coordinates and no values. Tiles under `go` share it: an axis over
 * its positions has a place for each, and inverses load the coordinate there, `ko[q]`. So values lie in any order of the axes
 * around a list.
 *
 * To kernels it is a table over the axes above it and its positions: `ko[io, go, q]` is found like an element of any buffer
 * over them. Its array is what the level would store: `width` coordinates under each position of its parent, ascending.
 */
import { hasHoles, type PaddedAxis } from './axis.ts'
import { type Expr, type Load, lt } from './expr.ts'
import { walkExpr } from './expr-tree.ts'

export interface CoordinateList {
  /** Under an axis of the format. */
  readonly axis: PaddedAxis
  /** The axes from a root down to its parent: what a load of it names before the position. */
  readonly under: readonly string[]
  /** The coordinate that an element has on it, as maps have those of axes. */
  readonly coordinate: Expr
  /** The query for the place of that coordinate in the list, where the map asks for it. */
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

/** Conditions of there being a coordinate at the position that a load asks for: padding without one has the extent. */
export const isListed = (load: Expr, { axis }: CoordinateList): readonly Expr[] =>
  hasHoles(axis) ? [lt(load, axis.extent)] : []
