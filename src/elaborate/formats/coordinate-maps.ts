/** Elaboration of `map` and `inverse` of a format: from the tensor's coordinates to stored coordinates, and back. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { report } from '../diagnostics.ts'
import { namesAt } from './format-names.ts'
import { type FormatScope, type Head, integerAt, type Numbers } from './format-place.ts'
import type { Queries } from './format-uses.ts'

export const coordinatesOf = (names: readonly string[], own: readonly string[] = names): Numbers =>
  new Map(
    names.map((name, k) => [name, { name: own[k]!, dtype: 'index' as const, coordinate: true as const }]),
  )

interface MapPlace {
  readonly head: Head
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly place: FormatScope
  readonly queries: Queries | string
}

export interface CoordinateMap {
  /** The coordinates that the map computes: an expression for each name of `to`. */
  readonly exprs: readonly Expr[]
  /** The query of the position, for each list whose position the map uses. */
  readonly positions: ReadonlyMap<string, string>
}

/**
 * A coordinate map. Its operands may have other names in the text than in the format; the result has the names that the
 * format declares.
 */
export function coordMap(m: Ast.CoordMap, which: 'map' | 'inverse', at: MapPlace): CoordinateMap | null {
  const { head, from, to, place } = at
  const wrong = (message: string, names: readonly { readonly span: Span }[], expected: string): null =>
    report('check/map-arity', names[0]?.span ?? m.span, { message, expected })
  if (m.from.length !== from.length)
    return wrong(
      `${which} of format ${head.name} takes ${m.from.length} coordinates`,
      m.from,
      `${from.length}: (${from.join(', ')})`,
    )
  if (m.to.length !== to.length)
    return wrong(
      `${which} of format ${head.name} gives ${m.to.length} coordinates`,
      m.to,
      `${to.length}, one for each of (${to.join(', ')})`,
    )
  const own = m.from.map((i) => i.name)
  const params = head.params.map((p) => p.name)
  const twice = m.from.find(
    (i, k) => own.indexOf(i.name) !== k || (params.includes(i.name) && !from.includes(i.name)),
  )
  if (twice)
    return report('check/duplicate', twice.span, {
      message: `${which} has two meanings for ${twice.name}`,
      hint: 'choose another name for the coordinate',
    })
  const renamed = new Map(own.map((name, k) => [name, from[k]!]))
  const here: FormatScope = {
    ...place,
    what: `the ${which} of format ${head.name}`,
    values: new Map([...place.values, ...coordinatesOf(own, from)]),
    size: (dim) => place.size?.(which === 'map' ? (renamed.get(dim) ?? dim) : dim),
    queries: at.queries,
  }
  const lists = new ListPositions(m, at, here)
  const exprs = m.to.map((_, k) => lists.coordinate(k))
  return exprs.some((e) => e === null) ? null : { exprs: exprs as Expr[], positions: lists.positions }
}

/** Positions of coordinates in lists, derived from the map's expressions for the list and the axes above it. */
class ListPositions {
  readonly positions = new Map<string, string>()
  readonly #scope: FormatScope
  readonly #around: string[] = []

  constructor(
    private readonly map: Ast.CoordMap,
    private readonly at: MapPlace,
    scope: FormatScope,
  ) {
    this.#scope =
      typeof at.queries === 'string'
        ? scope
        : { ...scope, position: (list, span) => this.#position(list, span) }
  }

  coordinate(k: number): Expr | null {
    return integerAt(this.map.to[k]!, namesAt(this.#scope), 'a coordinate')
  }

  /**
   * The position of a coordinate: its rank among the distinct coordinates that the list has under the same outer
   * position.
   */
  #position(name: string, span: Span): Expr | null {
    const { queries, to } = this.at
    const list = this.#scope.lists?.find((l) => l.name === name)
    if (typeof queries === 'string' || !list) return null
    if (this.#around.includes(name))
      return report('check/list-cycle', span, {
        message: `the position of a coordinate in ${name} depends on position(${name})`,
        expected: `coordinates of ${name} and of parent axes that do not depend on ${name}`,
      })
    this.#around.push(name)
    const [of, ...by] = [name, ...list.under].map((axis) => this.coordinate(to.indexOf(axis)))
    this.#around.pop()
    if (!of || by.some((e) => e === null)) return null
    const rank = queries.add({ kind: 'rank', of: [of], by: by as Expr[] }, span)
    this.positions.set(name, rank.name)
    return rank
  }
}
