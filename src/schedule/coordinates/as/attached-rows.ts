/**
 * Replacement of an attached axis in a part of a format. The new axis is entered through the part's axis for the
 * parent coordinate. If the format belongs to the entered tensor, the new axis enters the rows of the part.
 */
import type { Diagnostic } from '../../../ast/diagnostics/diagnostic.ts'
import type { AttachedAxis, Axis } from '../../../ir/coordinates/axis.ts'
import { isAttached, isFused, isPadded, parentOf } from '../../../ir/coordinates/axis.ts'
import type { Iter, Iteration } from '../../../ir/coordinates/stage1.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { printExpr1 } from '../../../ir/print/print-stage1.ts'
import type { Split } from './tensor-split.ts'

/** The context of an iterator over an attached axis: its iteration, the part of the format, and the open axes. */
export interface Entry {
  readonly it: Iteration
  readonly split: Split
  readonly part: FormatInstance
  /** Old axes whose iterators the format has replaced. */
  readonly known: ReadonlySet<string>
  /** The replacement of each old attached axis. */
  readonly renamed: ReadonlyMap<string, string>
}

/** Rows of a part that are entered at a coordinate: `root` is their axis, `child` the axis of their elements. */
export interface Rows {
  readonly root: string
  readonly child: string
}

/** Returns the axis that replaces an attached axis in the part, and the entered rows of the part; or a diagnostic. */
export function viewOf(
  x: Iter,
  axis: AttachedAxis,
  { it, split, part, known, renamed }: Entry,
): { readonly axis: string; readonly rows?: Rows } | Diagnostic {
  const { over, instance, views } = split
  const rows = over.some((a) => a.name === axis.base)
    ? rowsOf(
        over.map((a) => a.name),
        axis.base,
        part,
      )
    : null
  const refuse = (message: string, expected: string, hint: string): Diagnostic => ({
    code: 'schedule/format-children',
    message: `iteration ${it.name} enters ${axis.base} ${message}`,
    expected,
    hint,
  })
  if (rows === undefined)
    return refuse(
      `by coordinates of ${axis.parent}, and ${part.text} has no rows indexed by a coordinate of ${over[0]!.name}`,
      `a format whose first axis has the coordinates of ${over[0]!.name}, and whose second those of ${axis.base}`,
      `choose another format, such as csr, or keep ${axis.base} as the kernel declares it`,
    )
  // Elements of a row that is entered at a coordinate are looked up by coordinate, so padding must not have a
  // coordinate.
  if (rows && part.axes.some(isPadded))
    return refuse(
      `by coordinates of ${axis.parent}, and rows of ${part.text} are padded with coordinates of elements`,
      'a format whose padding has no coordinate',
      'choose another format, such as ell or csr',
    )
  const base = rows?.child ?? axis.base
  const k = over.findIndex((a) => a.name === axis.parent)
  if (k >= 0 && !known.has(axis.parent))
    return refuse(
      `by ${axis.parent}, which is also indexed by a coordinate, and ${instance.text} replaces both`,
      `no axis under ${axis.parent}`,
      `bind the tensor of ${axis.parent} a second time, over axes of its own`,
    )
  const inverse = k < 0 ? null : part.inverse[k]!
  if (inverse && rows && instance.parts.length > 1)
    return refuse(
      `by ${axis.parent}, and ${instance.text} has the rows of both in several parts`,
      'a format of one part',
      'bind the tensor a second time, over axes of its own',
    )
  const parent = inverse
    ? singleAxis(inverse, over[k]!.extent, part)
    : (renamed.get(axis.parent) ?? axis.parent)
  if (parent === null)
    return refuse(
      `by ${axis.parent}, which ${part.text} computes: ${printExpr1(inverse!)}`,
      `a format with one axis for the coordinates of ${axis.parent}`,
      `choose another format, such as csr, or one without blocks of ${axis.parent}`,
    )
  if (base === axis.base && parent === axis.parent) return { axis: x.axis }
  return { axis: views.of(base, parent), ...(rows && { rows }) }
}

/** The axis of a part that has the same coordinates as the old axis; null if the part computes the coordinate. */
function singleAxis(inverse: Expr, extent: Expr, part: FormatInstance): string | null {
  const axis = inverse.kind === 'var' ? part.axes.find((a) => a.name === inverse.name) : undefined
  return axis && sameExpr(axis.extent, extent) ? axis.name : null
}

function rowsOf(over: readonly string[], base: string, part: FormatInstance): Rows | undefined {
  if (over.length !== 2 || over[1] !== base || part.order.length !== 2) return undefined
  const [root, child] = part.inverse.map((e) =>
    e.kind === 'var' ? part.axes.find((a) => a.name === e.name) : undefined,
  )
  if (!root || !child || parentOf(root) !== null || parentOf(child) !== root.name) return undefined
  const identical = [root, child].every((a, k) => {
    const place = part.map[part.order.indexOf(a.name)]!
    return place.kind === 'var' && place.name === over[k]
  })
  return identical ? { root: root.name, child: child.name } : undefined
}

/** Returns the coordinate of each open axis: `outer`, then those of the iterators from the outermost inwards. */
export function opened(
  axes: ReadonlyMap<string, Axis>,
  iters: readonly Iter[],
  outer: ReadonlyMap<string, Expr>,
  values: ReadonlyMap<string, Expr>,
): ReadonlyMap<string, Expr> {
  const out = new Map(outer)
  for (const x of iters) {
    const axis = axes.get(x.axis)
    if (isFused(axis)) for (const m of axis.members) out.set(m, variable(m))
    else out.set(isAttached(axis) ? axis.base : x.axis, values.get(x.name) ?? variable(x.name))
  }
  return out
}

/** Returns the coordinate at which an attached axis is entered; undefined if its parent is not open. */
export function entryOf(
  axes: ReadonlyMap<string, Axis>,
  axis: AttachedAxis,
  open: ReadonlyMap<string, Expr>,
): Expr | undefined {
  const by = axes.get(axis.parent)
  return open.get(isAttached(by) ? by.base : axis.parent)
}
