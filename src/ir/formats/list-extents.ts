/** Extents of the lists in which formats look up coordinates: a list divides such an extent into segments. */

import { distinctExprs } from '../expressions/distinct-expressions.ts'
import { ceildiv, type Expr } from '../expressions/expr.ts'
import type { FormatInstance, Instance } from './format.ts'
import { childrenOf, type PartTree } from './part-tree.ts'
import { operandsOf, type Query, sourceOf } from './queries.ts'

type Extents = ReadonlyMap<string, Expr>
type QueriesAndSorts = Pick<FormatInstance, 'queries' | 'sorts'>

/**
 * The number of values of an expression: for a coordinate, the extent of its dimension (or sorted axis); for a place in
 * a sort, the number of places; for blocks of these, the number of blocks. `undefined` if unknown.
 */
export function extentOf(e: Expr, extents: Extents, { queries, sorts }: QueriesAndSorts): Expr | undefined {
  if (e.kind === 'binary' && e.op === 'div' && e.b.kind === 'const') {
    const dividend = extentOf(e.a, extents, { queries, sorts })
    return dividend && ceildiv(dividend, e.b)
  }
  if (e.kind !== 'var') return undefined
  const q = queries.find((x) => x.name === e.name)
  const sort = q && sourceOf(q, 'sort')
  return extents.get(e.name) ?? sorts.find((s) => s.place === sort)?.extent
}

/** For each query that looks up a coordinate in the list, the extent of that coordinate; `undefined` if unknown. */
function lookupExtents(
  list: string,
  queries: readonly Query[],
  extents: Extents,
  sorts: FormatInstance['sorts'],
): (Expr | undefined)[] {
  return queries
    .filter((q) => sourceOf(q, 'list') === list)
    .flatMap((q) => operandsOf(q).map((e) => extentOf(e, extents, { queries, sorts })))
}

const extentsByAxis = (over: Instance['over']): Extents => new Map(over.map((a) => [a.name, a.extent]))

/** Extents looked up by a part: by its map, and by the keys of its sorts, which may also use the sorted axis. */
function lookupExtentsOfPart(
  list: string,
  { queries, sorts }: QueriesAndSorts,
  extents: Extents,
): (Expr | undefined)[] {
  const keys = sorts.flatMap((s) =>
    lookupExtents(list, s.queries, new Map([...extents, [s.dim, s.extent]]), []),
  )
  return [...lookupExtents(list, queries, extents, sorts), ...keys]
}

/**
 * The extent that a part's list divides into segments; the extent of the first dimension if no query
 * determines it.
 */
export const listExtentInPart = (list: string, part: QueriesAndSorts, over: Instance['over']): Expr =>
  lookupExtentsOfPart(list, part, extentsByAxis(over)).find((e) => e !== undefined) ?? over[0]!.extent

/**
 * The distinct extents with which a list must end: those of all coordinates that maps, keys and conditions
 * look up in it. Empty if they look up only other expressions, or nothing; the list may then end anywhere.
 */
export function listExtents(
  list: string,
  { over, tree, parts }: Pick<Instance, 'over' | 'tree' | 'parts'>,
): readonly Expr[] {
  const extents = extentsByAxis(over)
  const extentsInTree = (t: PartTree): (Expr | undefined)[] =>
    t.kind === 'leaf'
      ? []
      : [...lookupExtents(list, t.queries, extents, []), ...childrenOf(t).flatMap(extentsInTree)]
  const candidates = [
    ...parts.flatMap((p) => lookupExtentsOfPart(list, p.instance, extents)),
    ...extentsInTree(tree),
  ]
  const knownExtents = candidates.filter((e) => e !== undefined)
  return distinctExprs(knownExtents)
}
