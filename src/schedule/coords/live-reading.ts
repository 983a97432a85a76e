/** What of a dense tensor says that a format lists a coordinate. */
import type { Axis, StoredAxis } from '../../ir/axis.ts'
import { and, differs, type Expr, load, lt, variable } from '../../ir/expr.ts'
import { freeVars, substitute } from '../../ir/expr-tree.ts'
import type { Buffer1 } from '../../ir/stage1.ts'
import type { LiveFormat } from './live-format.ts'

export interface Source {
  readonly buffer: Buffer1
  /** Where the format's dimensions begin. */
  readonly start: number
  /** The axes of these dimensions. */
  readonly over: readonly StoredAxis[]
  /** Those of the kernel. */
  readonly axes: readonly Axis[]
  /** What elements have to fulfil besides, over the names of the axes of these dimensions. */
  readonly where: Expr | null
}

/**
 * Whether the tensor holds anything where a coordinate `listed` is, at coordinates of the format's dimensions; the names of all
 * that its index changes with, from that which changes it most, and the axes of those of its other dimensions: something is
 * listed where any of these hold something.
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
  // What is but one digit ends where its axis does; words go on behind a digit below others.
  const inside = coordinates.flatMap((e, k) => (e.kind === 'var' ? [] : [lt(e, over[k]!.extent)]))
  const isFirst = format.inverse(LISTED).some((e) => firstDigit(e) === LISTED)
  if (!isFirst) inside.unshift(lt(listed, format.extent))
  return { axes, inside, held, order: index.flatMap((e) => [...freeVars(e)]) }
}

const LISTED = variable('listed')

/** What stands for so many that the coordinate has no more of them than its axis has room for. */
const firstDigit = (e: Expr): Expr => (e.kind === 'binary' ? firstDigit(e.a) : e)
