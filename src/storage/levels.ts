/** What assembling one level takes and gives. */
import { MAX_POSITIONS } from '../columns/allocate.ts'
import type { StoredAxis } from '../ir/axis.ts'
import type { Expr } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Level } from './storage.ts'

/** An axis, the coordinate of each entry on it, and its sizes; a width that is `null` is still to be measured. */
export interface Dimension {
  readonly axis: StoredAxis
  readonly coordinate: Expr
  readonly extent: number
  readonly padding: number
  readonly width: number | null
  /** Positions that there is room for, where fewer than there could be. */
  readonly room?: number | undefined
}

export interface Place {
  /** Position on the level so far; `null`: the only segment of a root. */
  readonly at: Expr | null
  readonly positions: number
}

export interface Made<C> {
  readonly level: Level<C>
  readonly at: Expr
}

export const none = { width: null, indptr: null, indices: null, mask: null }

/** Positions that there are memory and indices for. */
export function checked<C extends Column>(frame: Frame<C>, axis: StoredAxis, positions: number): number {
  if (positions > MAX_POSITIONS) frame.engine.tooLarge(positions, `positions of axis ${axis.name}`, axis.span)
  return positions
}
