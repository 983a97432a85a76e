/** Inputs and results of assembling one level. */
import { MAX_POSITIONS } from '../columns/allocate.ts'
import type { StoredAxis } from '../ir/axis.ts'
import type { Expr } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Level } from './storage.ts'

/** An axis, the coordinate of each entry on it, and its sizes; a `null` width is measured. */
export interface Dimension {
  readonly axis: StoredAxis
  readonly coordinate: Expr
  readonly extent: number
  readonly padding: number
  readonly width: number | null
  /** Capacity in positions, if it is less than the maximum. */
  readonly room?: number | undefined
}

export interface Place {
  /** Position on the level; `null`: the only segment of a root. */
  readonly at: Expr | null
  readonly positions: number
}

export interface Made<C> {
  readonly level: Level<C>
  readonly at: Expr
}

export const none = { width: null, indptr: null, indices: null, mask: null }

/** Checks that the number of positions fits memory and index types. */
export function checked<C extends Column>(frame: Frame<C>, axis: StoredAxis, positions: number): number {
  if (positions > MAX_POSITIONS) frame.engine.tooLarge(positions, `positions of axis ${axis.name}`, axis.span)
  return positions
}
