/** Inputs and results of the assembly of one level. */
import { LEVEL_ARRAYS, type LevelArray } from '../ast/nodes/axis-kinds.ts'
import { MAX_POSITIONS } from '../columns/allocate.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import type { Starts } from '../columns/engine-operands.ts'
import type { Level } from '../columns/stored-level.ts'
import type { StoredAxis } from '../ir/coordinates/axis.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'

/** An axis, the coordinate of each entry on it, and its sizes; a `null` width is measured. */
export interface Dimension {
  readonly axis: StoredAxis
  readonly coordinate: Expr
  readonly extent: number
  readonly padding: number
  readonly width: number | null
  /** Capacity in positions, if it is less than the maximum. */
  readonly capacity?: number | undefined
}

export interface ParentPosition {
  /** Position on the level; `null`: the only segment of a root. */
  readonly position: Expr | null
  readonly positions: number
}

export interface AssembledLevel<C> {
  readonly level: Level<C>
  readonly position: Expr
}

/** The arrays and the width of a level without any. */
export const noArrays = {
  width: null,
  ...(Object.fromEntries(LEVEL_ARRAYS.map((array) => [array, null])) as { readonly [A in LevelArray]: null }),
}

/** Checks that the number of positions fits memory and index types. */
export function checkPositions<C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  positions: number,
): number {
  if (positions > MAX_POSITIONS)
    frame.engine.rejectCount(positions, `positions of axis ${axis.name}`, axis.span)
  return positions
}

/**
 * Entries that start a new position on a level: those where the parent or the coordinate changes, and those
 * in `starts`.
 */
export function runStarts(d: Dimension, { position }: ParentPosition, starts: Starts | null): Starts {
  const keys = [...(position ? [position] : []), d.coordinate]
  const seen = new Set(keys.map(keyOf))
  return {
    keys: [...keys, ...(starts?.keys ?? []).filter((k) => !seen.has(keyOf(k)))],
    cut: starts?.cut ?? null,
  }
}
