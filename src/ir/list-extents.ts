/** What lists of formats cut into segments: it is what coordinates are that are looked up in them. */
import { ceildiv, type Expr } from './expr.ts'
import type { FormatInstance, Instance } from './format.ts'
import { childrenOf, type PartTree } from './part-tree.ts'
import { operandsOf, type Query, sourceOf } from './queries.ts'
import { keyOf } from './structural-equality.ts'

type Extents = ReadonlyMap<string, Expr>
type Asking = Pick<FormatInstance, 'queries' | 'sorts'>

/**
 * How many values an expression has, by where it stands: of a coordinate as many as there are on its dimension (or sorted axis), of
 * a place in a sort as many as there are places, of blocks of these as many as there are blocks. None: no other is known.
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

/** For each question that looks something up in a list the extent of that; none where it is not known. */
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

/** Those of a part: what its map asks, and the keys of its sorts, which are about what they sort as well. */
function lookedUpIn(list: string, { queries, sorts }: Asking, extents: Extents): (Expr | undefined)[] {
  const keys = sorts.flatMap((s) => lookedUp(list, s.queries, new Map([...extents, [s.dim, s.extent]]), []))
  return [...lookedUp(list, queries, extents, sorts), ...keys]
}

/** The extent that one part has its list cut, the first dimension's where nothing says so. */
export const cutByPart = (list: string, part: Asking, over: Instance['over']): Expr =>
  lookedUpIn(list, part, extentsOn(over)).find((e) => e !== undefined) ?? over[0]!.extent

/**
 * The extents that a list ends with, each once: those of all coordinates that maps, keys and conditions look up in it. None where
 * they look up other expressions alone, or nothing: it may end anywhere then.
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
