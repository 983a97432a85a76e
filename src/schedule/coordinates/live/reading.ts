/** The dense tensor whose values decide which coordinates a format lists. */
import type { Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1 } from '../../../ir/coordinates/stage1.ts'
import { and, differs, type Expr, load, lt, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, substitute } from '../../../ir/expressions/expr-tree.ts'
import type { LiveFormat } from './format.ts'

export interface Source {
  readonly buffer: Buffer1
  /** Index of the tensor's first dimension that the format covers. */
  readonly start: number
  /** The axes of the covered dimensions. */
  readonly over: readonly StoredAxis[]
  /** All axes of the kernel, including those of other tensors. */
  readonly axes: readonly Axis[]
  /** A further condition on the elements, over the names of the axes in `over`; null if there is no condition. */
  readonly where: Expr | null
}

/**
 * Returns the condition `held` that the tensor holds a value at the coordinate `listed`. `order` has the names that
 * the index depends on, slowest-varying first. `axes` has the axes of the other dimensions: a coordinate is listed if
 * any element along them holds a value. `inside` has the bounds of the coordinates.
 */
export function reading(
  { buffer, start, over, where }: Source,
  format: LiveFormat,
  listed: Expr,
  unused: (name: string) => string,
) {
  const coordinates = format.inverse(listed)
  const end = start + coordinates.length
  const axes = new Map<string, string>()
  const index = buffer.axes.map((axis, k) => {
    if (k >= start && k < end) return coordinates[k - start]!
    const name = unused(axis)
    axes.set(name, axis)
    return variable(name)
  })
  const holds = differs(load(buffer.name, index, buffer.dtype), buffer.fill)
  const at = new Map(over.map((a, k) => [a.name, coordinates[k]!]))
  const held = where ? and(holds, substitute(where, at)) : holds
  // A coordinate of one digit ends with its axis. Words extend beyond the extent of the list if its coordinate is not
  // the top digit.
  const inside = coordinates.flatMap((e, k) => (e.kind === 'var' ? [] : [lt(e, over[k]!.extent)]))
  const isFirst = format.inverse(LISTED).some((e) => firstDigit(e) === LISTED)
  if (!isFirst) inside.unshift(lt(listed, format.extent))
  return { axes, inside, held, order: index.flatMap((e) => [...freeVars(e)]) }
}

const LISTED = variable('listed')

/** Returns the top digit of a coordinate, which the extent of the coordinate bounds. */
const firstDigit = (e: Expr): Expr => (e.kind === 'binary' ? firstDigit(e.a) : e)
