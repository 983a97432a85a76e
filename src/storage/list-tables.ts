/**
 * Lists of formats while a tensor is brought into one: each is assembled as a level of a pattern over the axes above it, and its
 * indices are a table of the part. Expressions that load it name coordinates on those axes, and the arrays are by positions.
 */
import { type CoordinateList, isListed, loadsOfLists } from '../ir/coordinate-lists.ts'
import { add, and, div, type Expr, ge, int, load, lt, mul, select, variable } from '../ir/expr.ts'
import { rewriteExpr } from '../ir/expr-tree.ts'
import type { FormatInstance } from '../ir/format.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import { checkLevelProperty } from './level-property-checks.ts'
import { assembleTrees } from './tree-assembly.ts'

/** The position on the last of the axes above a list. */
export type PositionAbove = (list: CoordinateList) => Expr

/** The tables of lists by name, and where each entry stands above them. @throws SptError as `assembleTrees` */
export function* assembleLists<C extends Column>(
  frame: Frame<C>,
  { axes, lists }: FormatInstance,
  coordinates: ReadonlyMap<string, Expr>,
  tables: Map<string, C>,
): Coroutine<PositionAbove> {
  const { engine } = frame
  for (const { axis, under, position } of lists) {
    const chain = [...under.map((name) => axes.find((a) => a.name === name)!), axis]
    const ranks = position === null ? new Map() : new Map([[axis.name, variable(position)]])
    const { levels, at } = yield* assembleTrees(frame, chain, coordinates, [], { ranks })
    if (axis.compact)
      yield* checkLevelProperty(
        engine,
        chain.map((a) => levels.get(a.name)!),
        'compact',
      )
    engine.compute(frame, above(axis.name), div(at, widthOf(frame, axis)))
    const { width, positions } = levels.get(axis.name)!
    frame.bounds.set(above(axis.name), [0, Math.max(0, positions / Math.max(1, width!) - 1)])
    // More coordinates than a list is wide were refused.
    if (position !== null) frame.bounds.set(position, [0, Math.max(0, width! - 1)])
    for (const [name, { indptr, indices, mask }] of levels) {
      engine.release(indptr, mask)
      if (name !== axis.name) engine.release(indices)
      else if (indices) tables.set(name, indices)
      frame.drop(`@at ${name}`)
      frame.drop(`@rank ${name}`)
    }
  }
  return ({ axis }) => variable(above(axis.name))
}

/** Takes out of a frame what `assembleLists` put there. */
export function dropLists<C extends Column>(frame: Frame<C>, lists: readonly CoordinateList[]): void {
  for (const { axis } of lists) frame.drop(above(axis.name))
}

const above = (list: string): string => `@above ${list}`

const widthOf = <C extends Column>(frame: Frame<C>, axis: CoordinateList['axis']): Expr =>
  frame.sized(frame.size(axis.width), `@width ${axis.name}`)

/** An expression that loads lists, as one over their arrays; beyond the width of a list there is no coordinate. */
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

/** Conditions under which the lists that expressions load have coordinates there. */
export const listedIn = (exprs: readonly Expr[], lists: readonly CoordinateList[]): readonly Expr[] =>
  exprs.flatMap((e) => loadsOfLists(e, lists).flatMap(({ load: x, list }) => isListed(x, list)))
