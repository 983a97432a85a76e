/**
 * The record of a level format: the level functions of Chou et al. (OOPSLA 2018), symbolic for kernels and concrete for
 * arrays. `ast/nodes/axis-kinds.ts` declares the level properties.
 */
import type { Facts } from '../analysis/integers/facts.ts'
import type { LevelArray } from '../ast/nodes/axis-kinds.ts'
import type { Coroutine } from '../ast/work.ts'
import { MAX_POSITIONS } from '../columns/allocate.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import type { Starts } from '../columns/engine-operands.ts'
import type { Level } from '../columns/stored-level.ts'
import type { StoredAxis } from '../ir/coordinates/axis.ts'
import { type Expr, ge, int, lt } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import type { Buffer } from '../ir/statements/loops.ts'
import type { BoundLevel } from './bind.ts'

export interface KernelLevels {
  /** The number of positions under all parents. */
  positions(axis: string): Expr
  /** The name of the array of segment offsets. */
  offsets(axis: string): string
}

/** The segment under a parent position (`null`: that of a root). */
export interface Segment {
  readonly parent: Expr | null
  /** The first position. */
  readonly base: Expr
  /** The number of iterations of a loop over the segment. */
  readonly length: Expr
  /** The coordinate at `base`, for formats that store consecutive coordinates. */
  readonly start: Expr
}

export interface Entry {
  readonly offset: Expr
  readonly coordinate: Expr
  /** Conditions under which the iteration has a position (no padding, bit set). */
  readonly guards: readonly Expr[]
}

/** An index array of an axis; `values`: what is known of its elements. */
export interface IndexArray {
  readonly array: LevelArray
  readonly length: Expr
  readonly values?: Pick<Buffer, 'below' | 'ascending' | 'packed' | 'positions'>
}

/** A position. `end`: end of the range of positions with the same coordinate on a nonunique axis; null for a single position. */
export interface Position {
  readonly at: Expr
  readonly end: Expr | null
  /** Found under the first of several parents, whose others may have the same coordinate and other children. */
  readonly apart?: boolean
}

/** A coordinate to be located under the position `above` of the parent (`null`: a root). */
export interface Lookup {
  readonly coordinate: Expr
  readonly above: Position | null
  /** True if the parent position exists. */
  readonly certain: Expr
  readonly facts: Facts
  readonly levels: KernelLevels
}

/** Conditions under which a position exists, each evaluated only if the earlier conditions hold. */
export interface Located {
  readonly position: Position
  readonly present: readonly Expr[]
}

/** Inputs of the assembly of one level. `starts`: new positions within runs of equal coordinates, for nonunique axes. */
export interface AssemblyInput<C extends Column> {
  readonly frame: Frame<C>
  readonly d: Dimension
  readonly parent: ParentPosition
  readonly starts: Starts | null
  /** The order of entries is unknown; the tree's only level that stores single coordinates has width 1. */
  readonly inAnyOrder: boolean
}

export type RankedInput<C extends Column> = Omit<AssemblyInput<C>, 'starts' | 'inAnyOrder'>

interface Ancestor {
  readonly parent: Expr
  readonly coordinate: Expr
}

/** All that is known of the storage of levels of one kind. */
export interface LevelFormat<A extends StoredAxis = StoredAxis> {
  /** A coordinate can be searched for in the segments of several parent positions at once. */
  readonly searchable: boolean
  /**
   * Entries must be in order for assembly: always, except if ranks are known; only on engines that do not rank coordinates
   * in segments; or never.
   */
  readonly order: 'entries' | 'unless ranked' | 'none'

  // Addresses in kernels ------------------------------------------------------------------------------------------
  indexArrays(axis: A, levels: KernelLevels): readonly IndexArray[]
  /** Iterations per parent position, if loops visit coordinates without a position; otherwise `null`. */
  slots(axis: A): Expr | null
  /** The segment under the parent position, or under the range of parent positions up to `end`. */
  segment(axis: A, parent: Expr | null, end: Expr | null, levels: KernelLevels): Segment
  /** Position and coordinate of iteration `relative` over a segment. */
  entry(axis: A, segment: Segment, relative: Expr): Entry
  locate(axis: A, lookup: Lookup): Located

  // Columns -------------------------------------------------------------------------------------------------------
  assemble<C extends Column>(input: AssemblyInput<C>): Coroutine<AssembledLevel<C>>
  /**
   * As `assemble` for entries in any order, given the rank of each in its segment; `lengths`: the number of ranks by
   * segment, if known. `null` if the format never requires an order.
   */
  readonly assembleRanked:
    | (<C extends Column>(
        input: RankedInput<C>,
        rank: Expr,
        lengths: C | null,
      ) => Coroutine<AssembledLevel<C>>)
    | null
  /** The inverse of assembly: parent and coordinate of a position. New columns are appended to `allocated`. */
  ancestor<C extends Column>(
    frame: Frame<C>,
    level: Level<C>,
    position: Expr,
    parents: number,
    allocated: C[],
  ): Ancestor

  // Arrays on the host --------------------------------------------------------------------------------------------
  bind(axis: A, input: BoundLevel): Level

  // Pictures ------------------------------------------------------------------------------------------------------
  /** Positions of a segment are drawn as cells of one line, even if outer levels are drawn from top to bottom. */
  readonly inline?: true
}

/** Conditions that an expression is at least 0 and less than `extent`, without those known to hold. */
export function rangeChecks(facts: Facts, e: Expr, extent: Expr): Expr[] {
  const checks: Expr[] = []
  if (!facts.nonNegative(e)) checks.push(ge(e, int(0)))
  if (!facts.below(e, extent)) checks.push(lt(e, extent))
  return checks
}

// Inputs and results of the assembly of one level.

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

/** A level with some arrays. The spread comes last, because V8 keeps objects with later properties until a major collection. */
export const makeLevel = <C>(
  { axis, extent }: Pick<Level, 'axis' | 'extent'>,
  positions: number,
  arrays: Partial<Pick<Level<C>, LevelArray | 'width' | 'bits'>> = {},
): Level<C> => ({
  axis,
  extent,
  positions,
  width: null,
  indptr: null,
  indices: null,
  mask: null,
  starts: null,
  ...arrays,
})

export function checkPositions<C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  positions: number,
): number {
  if (positions > MAX_POSITIONS)
    frame.engine.rejectCount(positions, `positions of axis ${axis.name}`, axis.span)
  return positions
}

/** Entries that start a position: where the parent or the coordinate changes, and those in `starts`. */
export function runStarts(d: Dimension, { position }: ParentPosition, starts: Starts | null): Starts {
  const keys = [...(position ? [position] : []), d.coordinate]
  const seen = new Set(keys.map(keyOf))
  return {
    keys: [...keys, ...(starts?.keys ?? []).filter((k) => !seen.has(keyOf(k)))],
    cut: starts?.cut ?? null,
  }
}
