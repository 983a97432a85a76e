/**
 * Parts of a partition, cut to their ranges: an axis that is dense over a dimension, or over blocks of it, covers only
 * the coordinates of the part's range, counted from its start. All c parts together have as many rows as one.
 *
 * Map and inverse change on that axis only. Conditions, queries and sorts remain over the tensor's coordinates.
 */
import { isDense, type StoredAxis } from '../../ir/axis.ts'
import {
  add,
  and,
  ceildiv,
  div,
  type Expr,
  ge,
  int,
  load,
  lt,
  min,
  mul,
  sub,
  variable,
} from '../../ir/expr.ts'
import { children, substitute, withChildren } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import { sameExpr } from '../../ir/structural-equality.ts'

/** Coordinates from `start` to before `end`; `0 <= start <= end <=` the extent for every extent. */
export interface Range {
  readonly start: Expr
  readonly end: Expr
  /** Lower bound of the range's coordinates; beyond the extent for an empty range. */
  readonly least: Expr
  /** The number of ranges. */
  readonly of: number
}

/** Ranges by number of the dimension. */
export type Ranges = ReadonlyMap<number, Range>

/** Range p of `into` ranges of equal size; the last ones may be shorter, or empty. */
export function rangeOf(extent: Expr, p: number, into: number): Range {
  const size = ceildiv(extent, int(into))
  // The first end is within the extent, and the last one equals it.
  const border = (k: number): Expr =>
    k === 0 ? int(0) : k === into ? extent : k === 1 ? size : min(mul(size, int(k)), extent)
  return { start: border(p), end: border(p + 1), least: mul(size, int(p)), of: into }
}

/** The condition that a coordinate is in a range. */
export const isIn = (e: Expr, { least, end }: Range): Expr => and(ge(e, least), lt(e, end))

/** Adds a range; of several ranges of one dimension the finest is kept. */
export const within = (ranges: Ranges, dim: number, range: Range): Ranges =>
  (ranges.get(dim)?.of ?? 1) < range.of ? new Map([...ranges, [dim, range]]) : ranges

/** The instance cut to ranges; the same object if no axis is dense over a dimension with a range. */
export function cutToRanges(
  whole: FormatInstance,
  over: readonly StoredAxis[],
  ranges: Ranges,
): FormatInstance {
  const cuts = new Map<string, Range>()
  whole.order.forEach((name, k) => {
    const axis = whole.axes.find((a) => a.name === name)!
    for (const [dim, range] of ranges) {
      const cut = isDense(axis) && onAxis(whole.map[k]!, axis.extent, over[dim]!, range)
      if (cut) cuts.set(name, cut)
    }
  })
  if (cuts.size === 0) return whole
  const shifted = new Map([...cuts].map(([name, { start }]) => [name, add(variable(name), start)]))
  return {
    ...whole,
    axes: whole.axes.map((a) => {
      const cut = cuts.get(a.name)
      return cut ? { ...a, extent: sub(cut.end, cut.start) } : a
    }),
    map: whole.map.map((e, k) => sub(e, cuts.get(whole.order[k]!)?.start ?? int(0))),
    inverse: whole.inverse.map((e) => shiftedIn(e, shifted, whole)),
  }
}

/** Adds the starts of axes to coordinates; list loads keep the indices of their ancestor axes. */
function shiftedIn(e: Expr, shifted: ReadonlyMap<string, Expr>, whole: FormatInstance): Expr {
  const go = (x: Expr): Expr => {
    if (x.kind === 'var') return shifted.get(x.name) ?? x
    if (x.kind !== 'load' || !whole.lists.some((l) => l.axis.name === x.buffer))
      return withChildren(x, children(x).map(go))
    const last = x.index.length - 1
    return load(x.buffer, [...x.index.slice(0, last), go(x.index[last]!)], x.dtype, x.span)
  }
  return whole.lists.length === 0 ? substitute(e, shifted) : go(e)
}

/**
 * The range of an axis' coordinates that corresponds to a range of a dimension: the dimension itself, or its blocks of
 * b.
 */
function onAxis(map: Expr, extent: Expr, dim: StoredAxis, range: Range): Range | null {
  const is = (e: Expr): boolean => e.kind === 'var' && e.name === dim.name
  if (is(map)) return sameExpr(extent, dim.extent) ? range : null
  if (map.kind !== 'binary' || map.op !== 'div' || !is(map.a) || map.b.kind !== 'const') return null
  if (!sameExpr(extent, ceildiv(dim.extent, map.b))) return null
  return { ...range, start: div(range.start, map.b), end: ceildiv(range.end, map.b) }
}
