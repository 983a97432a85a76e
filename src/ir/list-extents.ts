/** Extents of the lists that formats look coordinates up in: a list cuts that extent into segments. */
import { ceildiv, type Expr } from './expr.ts'
import type { FormatInstance, Instance } from './format.ts'
import { childrenOf, type PartTree } from './part-tree.ts'
import { operandsOf, type Query, sourceOf } from './queries.ts'
import { keyOf } from './structural-equality.ts'

type Extents = ReadonlyMap<string, Expr>
type Asking = Pick<FormatInstance, 'queries' | 'sorts'>

/**
 * The number of values of an expression: for a coordinate, the extent of its dimension (or sorted axis); for a place in
 * a sort, the number of places; for blocks of these, the number of blocks. `undefined` if unknown.
 */
export function extentOf(e: Expr, extents: Extents, { queries, sorts }: Asking): Expr | undefined {
  if (e.kind === 'binary' && e.op === 'div' && e.b.kind === 'const') {
    const whole = extentOf(e.a, extents, { queries, sorts })
    return whole && ceildiv(whole, e.b)
  }
  if (e.kind !== 'var') return undefined
  const q = queries.find((x) => x.name === e.name)
  const sort = q && sourceOf(q, 'sort')
  return extents.get(e.name) ?? sorts.find((s) => s.place === sort)?.extent
}

/** For each query that looks up a coordinate in the list, the extent of that coordinate; `undefined` if unknown. */
function lookedUp(
  list: string,
  queries: readonly Query[],
  extents: Extents,
  sorts: FormatInstance['sorts'],
): (Expr | undefined)[] {
  return queries
    .filter((q) => sourceOf(q, 'list') === list)
    .flatMap((q) => operandsOf(q).map((e) => extentOf(e, extents, { queries, sorts })))
}

const extentsOn = (over: Instance['over']): Extents => new Map(over.map((a) => [a.name, a.extent]))

/** Extents looked up by a part: by its map, and by the keys of its sorts, which may also use the sorted axis. */
function lookedUpIn(list: string, { queries, sorts }: Asking, extents: Extents): (Expr | undefined)[] {
  const keys = sorts.flatMap((s) => lookedUp(list, s.queries, new Map([...extents, [s.dim, s.extent]]), []))
  return [...lookedUp(list, queries, extents, sorts), ...keys]
}

/** The extent that a part's list cuts into segments; the first dimension's if no query determines it. */
export const cutByPart = (list: string, part: Asking, over: Instance['over']): Expr =>
  lookedUpIn(list, part, extentsOn(over)).find((e) => e !== undefined) ?? over[0]!.extent

/**
 * The distinct extents that a list must end with: those of all coordinates that maps, keys and conditions look up in
 * it. Empty if they look up only other expressions, or nothing; the list may then end anywhere.
 */
export function extentsCut(
  list: string,
  { over, tree, parts }: Pick<Instance, 'over' | 'tree' | 'parts'>,
): readonly Expr[] {
  const extents = extentsOn(over)
  const inTree = (t: PartTree): (Expr | undefined)[] =>
    t.kind === 'leaf' ? [] : [...lookedUp(list, t.queries, extents, []), ...childrenOf(t).flatMap(inTree)]
  const all = [...parts.flatMap((p) => lookedUpIn(list, p.instance, extents)), ...inTree(tree)]
  const known = all.filter((e) => e !== undefined)
  return [...new Map(known.map((e) => [keyOf(e), e])).values()]
}
