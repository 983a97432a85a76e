/** Segments of equal size, and segments with stored offsets (`indptr`). */
import { invariant } from '../ast/diagnostics/diagnostic.ts'
import { type Column, ENTRY, type Engine, Frame } from '../columns/column-engine.ts'
import type { Level } from '../columns/stored-level.ts'
import { countOf, type StoredAxis } from '../ir/coordinates/axis.ts'
import { add, div, type Expr, int, load, mul, select, sub, variable } from '../ir/expressions/expr.ts'
import type { IndexArray, KernelLevels, Lookup, Segment } from './types.ts'

/** A segment of `size` positions under each parent position. */
export const uniformSegment = (size: Expr, parent: Expr | null, end: Expr | null): Segment =>
  parent === null
    ? { parent, base: int(0), length: size, start: int(0) }
    : { parent, base: mul(parent, size), length: end ? mul(sub(end, parent), size) : size, start: int(0) }

/** A segment between two offsets; a root has one segment. */
export function offsetSegment(
  axis: StoredAxis,
  parent: Expr | null,
  end: Expr | null,
  levels: KernelLevels,
): Segment {
  if (parent === null) return { parent, base: int(0), length: variable(countOf(axis.name)), start: int(0) }
  const at = (p: Expr): Expr => load(levels.offsets(axis.name), [p])
  const base = at(parent)
  return { parent, base, length: sub(at(end ?? add(parent, int(1))), base), start: int(0) }
}

/** Loads of a segment depend on the parent position, so an absent parent has an empty one. */
export const segmentIf = (certain: Expr, { parent, base, length, start }: Segment): Segment => ({
  parent,
  base: select(certain, base, int(0)),
  length: select(certain, length, int(0)),
  start: select(certain, start, int(0)),
})

export const segmentOf = (
  segment: (parent: Expr | null, end: Expr | null) => Segment,
  { above, certain }: Lookup,
): Segment => segmentIf(certain, segment(above?.at ?? null, above?.end ?? null))

export const offsetsArray = (axis: StoredAxis, levels: KernelLevels): IndexArray => ({
  array: 'indptr',
  length: add(axis.parent === null ? int(1) : levels.positions(axis.parent), int(1)),
  values: { positions: variable(countOf(axis.name)) },
})

/** Binds an array to a name that expressions load it by. */
export function bindTable<C extends Column>(frame: Frame<C>, name: string, column: C): string {
  frame.tables.set(name, column)
  return name
}

export const uniformParent = <C extends Column>(frame: Frame<C>, level: Level<C>, position: Expr) => {
  const size = frame.bindSize(level.width ?? level.extent)
  return { parent: div(position, size), size }
}

export function offsetParent<C extends Column>(
  frame: Frame<C>,
  { axis, indptr, positions }: Level<C>,
  position: Expr,
  parents: number,
  allocated: C[],
): Expr {
  invariant(indptr, `${axis.name} has segments`)
  const column = frame.engine.parentsOf(indptr, parents, positions)
  allocated.push(column)
  return load(bindTable(frame, `@parents ${axis.name}`, column), [position])
}

export const distance = <C extends Column>(
  frame: Frame<C>,
  { axis, indptr }: Level<C>,
  position: Expr,
  parent: Expr,
): Expr => sub(position, segmentStart(frame, axis, indptr!, parent))

export const segmentStart = <C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  indptr: C,
  parent: Expr,
): Expr => load(bindTable(frame, `@indptr ${axis.name}`, indptr), [parent])

/** A column of `n` values of an expression over `ENTRY`. */
export function tabulate<C extends Column>(
  engine: Engine<C>,
  n: number,
  label: string,
  value: (frame: Frame<C>) => Expr,
): C {
  const frame = new Frame(engine, n, new Map())
  const out = engine.empty(n, label)
  engine.scatter(frame, out, variable(ENTRY), value(frame))
  return out
}
