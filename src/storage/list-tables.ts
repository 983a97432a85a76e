/**
 * Coordinate lists of formats during conversion: each is assembled as a level of a pattern over its ancestor axes, and
 * its indices become a table of the part. Expressions load it by coordinates on those axes, whereas the arrays are
 * indexed by positions.
 */
import type { StoredAxis } from '../ir/axis.ts'
import { type CoordinateList, isListed, loadsOfLists } from '../ir/coordinate-lists.ts'
import { add, and, type Expr, ge, int, load, lt, mul, select, variable } from '../ir/expr.ts'
import { rewriteExpr } from '../ir/expr-tree.ts'
import type { FormatInstance } from '../ir/format.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import { checkLevelProperty } from './level-property-checks.ts'
import { assembleTrees, type Begun } from './tree-assembly.ts'

/** The position on the innermost ancestor axis of a list. */
export type PositionAbove = (list: CoordinateList) => Expr

/**
 * Assembles lists and adds their arrays to `tables`. The levels above them, shared with the values, are returned in
 * `begun`, by the innermost axis. `ranks`: as in `assembleTrees`. @throws SptError as `assembleTrees`
 */
export function* assembleLists<C extends Column>(
  frame: Frame<C>,
  { axes, lists }: FormatInstance,
  coordinates: ReadonlyMap<string, Expr>,
  ranks: ReadonlyMap<string, Expr>,
  tables: Map<string, C>,
): Coroutine<ReadonlyMap<string, Begun<C>>> {
  const { engine } = frame
  const begun = new Map<string, Begun<C>>()
  for (const { axis, under, position } of lists) {
    const over = under.map((name) => axes.find((a) => a.name === name)!)
    yield* assembleAbove(frame, over, coordinates, ranks, begun)
    const chain = [...over, axis]
    const ranked = position === null ? [] : [[axis.name, variable(position)] as const]
    const options = { begun, ranks: new Map(ranked) }
    const { levels } = yield* assembleTrees(frame, chain, coordinates, [], options)
    if (axis.compact)
      yield* checkLevelProperty(
        engine,
        chain.map((a) => levels.get(a.name)!),
        'compact',
      )
    const { width, indices } = levels.get(axis.name)!
    // Longer lists were rejected before.
    if (position !== null) frame.bounds.set(position, [0, Math.max(0, width! - 1)])
    if (indices) tables.set(axis.name, indices)
    dropPlaces(frame, [axis])
  }
  return begun
}

/** Assembles the levels above lists, once for all lists under one axis. */
function* assembleAbove<C extends Column>(
  frame: Frame<C>,
  over: readonly StoredAxis[],
  coordinates: ReadonlyMap<string, Expr>,
  ranks: ReadonlyMap<string, Expr>,
  begun: Map<string, Begun<C>>,
): Coroutine<void> {
  const { name } = over.at(-1)!
  if (begun.has(name)) return
  const { levels, at, size } = yield* assembleTrees(frame, over, coordinates, [], { begun, ranks })
  frame.engine.compute(frame, above(name), at)
  frame.bounds.set(above(name), [0, Math.max(0, size - 1)])
  dropPlaces(frame, over)
  begun.set(name, { levels: over.map((a) => levels.get(a.name)!), at: variable(above(name)) })
}

function dropPlaces<C extends Column>(frame: Frame<C>, axes: readonly StoredAxis[]): void {
  for (const { name } of axes) {
    frame.drop(`@at ${name}`)
    frame.drop(`@rank ${name}`)
  }
}

/** The column of `assembleLists` with the position above a list. */
export const positionAbove: PositionAbove = ({ under }) => variable(above(under.at(-1)!))

const above = (axis: string): string => `@above ${axis}`

const widthOf = <C extends Column>(frame: Frame<C>, axis: CoordinateList['axis']): Expr =>
  frame.sized(frame.size(axis.width), `@width ${axis.name}`)

/** Rewrites list loads into loads of the lists' arrays; beyond the width of a list there is no coordinate. */
export function atPositions<C extends Column>(
  frame: Frame<C>,
  e: Expr,
  lists: readonly CoordinateList[],
  position: PositionAbove,
): Expr {
  if (lists.length === 0) return e
  return rewriteExpr(e, (x) => {
    const list = x.kind === 'load' ? lists.find((l) => l.axis.name === x.buffer) : undefined
    const place = x.kind === 'load' ? x.index.at(-1) : undefined
    if (x.kind !== 'load' || !list || !place) return undefined
    const width = widthOf(frame, list.axis)
    const at = load(x.buffer, [add(mul(position(list), width), place)], 'i32')
    const none = frame.sized(frame.size(list.axis.extent), `@extent ${list.axis.name}`)
    return select(and(ge(place, int(0)), lt(place, width)), at, none)
  })
}

/** Conditions that the lists have coordinates at the positions that expressions load. */
export const listedIn = (exprs: readonly Expr[], lists: readonly CoordinateList[]): readonly Expr[] =>
  exprs.flatMap((e) => loadsOfLists(e, lists).flatMap(({ load: x, list }) => isListed(x, list)))
