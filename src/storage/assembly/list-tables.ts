/**
 * Coordinate lists of formats during conversion: each is assembled as a level of a pattern over its ancestor axes, and
 * its indices become a table of the part. Expressions load it by coordinates on those axes, whereas the arrays are
 * indexed by positions.
 */

import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { type CoordinateList, existenceConditions, loadsOfLists } from '../../ir/coordinates/derived-names.ts'
import { add, and, type Expr, ge, int, load, lt, mul, select, variable } from '../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { checkLevelProperty } from './level-property-checks.ts'
import { assembleTrees, type TreePrefix } from './tree-assembly.ts'

/** The position of a list: that of its innermost ancestor axis. */
export type ListPosition = (list: CoordinateList) => Expr

/** Assembles lists into `tables`; returns the levels of their ancestors, which the values share, by the innermost axis. */
export function* assembleLists<C extends Column>(
  frame: Frame<C>,
  { axes, lists }: FormatInstance,
  coordinates: ReadonlyMap<string, Expr>,
  ranks: ReadonlyMap<string, Expr>,
  tables: Map<string, C>,
): Coroutine<ReadonlyMap<string, TreePrefix<C>>> {
  const { engine } = frame
  const prefixes = new Map<string, TreePrefix<C>>()
  for (const { axis, under, position } of lists) {
    const ancestors = under.map((name) => axes.find((a) => a.name === name)!)
    yield* assembleAncestors(frame, ancestors, coordinates, ranks, prefixes)
    const chain = [...ancestors, axis]
    const listRanks = position === null ? [] : [[axis.name, variable(position)] as const]
    const options = { prefixes, ranks: new Map(listRanks) }
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
    dropPositions(frame, [axis])
  }
  return prefixes
}

function* assembleAncestors<C extends Column>(
  frame: Frame<C>,
  ancestors: readonly StoredAxis[],
  coordinates: ReadonlyMap<string, Expr>,
  ranks: ReadonlyMap<string, Expr>,
  prefixes: Map<string, TreePrefix<C>>,
): Coroutine<void> {
  const { name } = ancestors.at(-1)!
  if (prefixes.has(name)) return
  const { levels, position, size } = yield* assembleTrees(frame, ancestors, coordinates, [], {
    prefixes,
    ranks,
  })
  frame.engine.compute(frame, positionColumn(name), position)
  frame.bounds.set(positionColumn(name), [0, Math.max(0, size - 1)])
  dropPositions(frame, ancestors)
  prefixes.set(name, {
    levels: ancestors.map((a) => levels.get(a.name)!),
    position: variable(positionColumn(name)),
  })
}

function dropPositions<C extends Column>(frame: Frame<C>, axes: readonly StoredAxis[]): void {
  for (const { name } of axes) {
    frame.drop(`@at ${name}`)
    frame.drop(`@rank ${name}`)
  }
}

export const listPosition: ListPosition = ({ under }) => variable(positionColumn(under.at(-1)!))

const positionColumn = (axis: string): string => `@above ${axis}`

const widthOf = <C extends Column>(frame: Frame<C>, axis: CoordinateList['axis']): Expr =>
  frame.bindSize(frame.size(axis.width), `@width ${axis.name}`)

/** Rewrites list loads into loads of the lists' arrays; beyond the width of a list there is no coordinate. */
export function rewriteListLoads<C extends Column>(
  frame: Frame<C>,
  e: Expr,
  lists: readonly CoordinateList[],
  position: ListPosition,
): Expr {
  if (lists.length === 0) return e
  return rewriteExpr(e, (x) => {
    const list = x.kind === 'load' ? lists.find((l) => l.axis.name === x.buffer) : undefined
    const index = x.kind === 'load' ? x.index.at(-1) : undefined
    if (x.kind !== 'load' || !list || !index) return undefined
    const width = widthOf(frame, list.axis)
    const coordinate = load(x.buffer, [add(mul(position(list), width), index)])
    const fillValue = frame.bindSize(frame.size(list.axis.extent), `@extent ${list.axis.name}`)
    return select(and(ge(index, int(0)), lt(index, width)), coordinate, fillValue)
  })
}

export const listConditions = (exprs: readonly Expr[], lists: readonly CoordinateList[]): readonly Expr[] =>
  exprs.flatMap((e) => loadsOfLists(e, lists).flatMap(({ load: x, list }) => existenceConditions(x, list)))
