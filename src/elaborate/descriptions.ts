/** Formats that describe what is stored: axes, sorts, coordinate maps. */

import { dependsOn, neededBy } from '../analysis/query-dependence.ts'
import { levelFormat } from '../ast/axis-kinds.ts'
import type { Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import { isDense, isPadded, isStored, type StoredAxis } from '../ir/axis.ts'
import { type Expr, variable } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { Format, FormatParam, Sort } from '../ir/format.ts'
import { declarationOf, sourceOf } from '../ir/queries.ts'
import { declareAxes } from './axes.ts'
import { elaborateExpr, truth } from './expressions.ts'
import { namesAt } from './format-names.ts'
import { givenOf, numbersOf } from './format-params.ts'
import { type FormatScope, integerAt, type Numbers, type SortNames } from './format-place.ts'
import { chainOf, type Declared, declare } from './kernel-names.ts'
import { Queries, queriesOf } from './query-list.ts'

/** What stands before the body of a format. */
export interface Head {
  readonly name: string
  readonly params: readonly FormatParam[]
  readonly over: readonly string[]
  readonly span: Span
}

export function elaborateDescription(b: Ast.Description, head: Head, d: Declared): Format | null {
  const { report } = d
  for (const s of b.sorts) {
    declare(d, s.place, 'sort')
    declare(d, s.at, 'sort')
  }
  const sorts: readonly SortNames[] = b.sorts.map((s) => ({ place: s.place.name, at: s.at.name }))
  const taken = new Set([...d.places.keys(), ...b.axes.map((a) => a.name.name)])
  const numbers = numbersOf(head.params)
  const place: FormatScope = {
    report,
    what: `format ${head.name}`,
    values: numbers,
    given: givenOf(head.params),
    size: (dim) => (head.over.includes(dim) ? `size(${dim})` : undefined),
    sorts,
    loads: true,
    dims: head.over,
    queries: '',
  }
  declareFormatAxes(b, head, place, d)
  const order = b.axes.map((a) => a.name.name)
  const queries = new Queries(taken)
  const map = coordMap(b.map, 'map', { head, from: head.over, to: order, place, queries })
  const made = b.sorts.map((s): Sort | null => {
    const axis = head.over.includes(s.dim.name) ? undefined : d.axes.get(s.dim.name)
    const own = axis && isStored(axis) && isDense(axis) ? axis : undefined
    const sort = elaborateSort(s, head, place, taken, own)
    if (!sort || !own || !map) return sort
    const of = sortedOn(s, map[order.indexOf(own.name)]!, b.sorts, queries, place)
    return of && { ...sort, of }
  })
  const inverse = coordMap(b.inverse, 'inverse', {
    head,
    from: order,
    to: head.over,
    place,
    queries: 'an inverse goes from stored coordinates to those of the tensor; queries belong in the map',
  })
  const where = b.where && condition(b.where.cond, head, place, queries)
  if (!map || !inverse || (b.where && !where) || made.some((s) => s === null)) return null
  return {
    kind: 'format',
    name: head.name,
    params: head.params,
    over: head.over,
    sorts: made as Sort[],
    queries: queries.list,
    axes: [...d.axes.values()].filter((a): a is StoredAxis => isStored(a)),
    order,
    map,
    inverse,
    where,
    claims: b.axes.flatMap((a) => a.claims.map((c) => ({ axis: a.name.name, claim: c.name }))),
    span: head.span,
  }
}

function declareFormatAxes(b: Ast.Description, head: Head, place: FormatScope, d: Declared): void {
  const dims: Numbers = new Map(head.over.map((name) => [name, { name, dtype: 'i32' }]))
  const extents: FormatScope = {
    ...place,
    what: `an extent of format ${head.name}`,
    values: new Map([...place.values, ...dims]),
    unknown: 'check/unknown-size',
    size: (dim) => (head.over.includes(dim) ? dim : undefined),
    loads: false,
    queries: 'declare a parameter that is measured: `w: size`',
  }
  declareAxes(d, b.axes, namesAt(extents))
  for (const a of b.axes)
    if (!levelFormat(a.def.kind))
      d.report.error({
        code: 'check/format-view',
        message: `axis ${a.name.name} of format ${head.name} is ${a.def.kind}: a view that stores nothing`,
        span: a.span,
        expected: 'dense and sparse axes',
      })
  for (const a of d.axes.values()) {
    const above = isStored(a) && !isDense(a) ? chainOf(d, a).slice(0, -1) : []
    const padded = above.find((name) => isPadded(d.axes.get(name)!))
    if (padded !== undefined)
      d.report.error({
        code: 'check/under-padding',
        message: `axis ${a.name} lies under ${padded}, whose padding is visited, and says where elements are`,
        ...(a.span && { span: a.span }),
        expected: `dense_fixed axes under ${padded}`,
        hint: `without \`padded with\`, what lies under the padding of ${padded} is passed over`,
      })
  }
}

const coordinatesOf = (names: readonly string[], own: readonly string[] = names): Numbers =>
  new Map(names.map((name, k) => [name, { name: own[k]!, dtype: 'i32' as const, coordinate: true as const }]))

/** What a whole slice of the tensor has one value of: a sort moves all of `s.dim`'s elements together. */
function elaborateSort(
  s: Ast.Sort,
  head: Head,
  place: FormatScope,
  taken: ReadonlySet<string>,
  axis: StoredAxis | undefined,
): Sort | null {
  const { report } = place
  const dim = s.dim.name
  if (!axis && !head.over.includes(dim)) return unknownDimension(s.dim, head.over, place)
  const open = axis && head.params.find((p) => p.measured && freeVars(axis.extent).has(p.name))
  if (open)
    return report.error({
      code: 'check/sort-key',
      message: `axis ${dim} is sorted, and its extent is measured`,
      span: s.dim.span,
      expected: 'an extent of sizes and parameters',
      hint: `give ${open.name} a value`,
    })
  const dims = axis ? [...head.over, dim] : head.over
  const queries = new Queries(taken)
  const keys: FormatScope = {
    ...place,
    what: `the key of a sort in format ${head.name}`,
    values: new Map([...place.values, ...coordinatesOf(dims)]),
    sorts: [],
    queries,
  }
  const key = integerAt(keys, s.by, namesAt(keys), 'a key')
  const windows: FormatScope = { ...place, what: 'the window of a sort', queries: 'give the window a size' }
  const within = s.within && integerAt(windows, s.within, namesAt(windows), 'a window')
  if (!key || (s.within && !within)) return null
  const wrong = queries.list.find((q) => !['group', 'coordinate'].includes(declarationOf(q).per))
  if (wrong)
    return report.error({
      code: 'check/sort-key',
      message: `a sort orders the coordinates of ${dim}, and ${wrong.kind} is asked of single elements`,
      span: wrong.span ?? s.by.span,
      expected: `count(… by ${dim}), least(… by ${dim})`,
    })
  const other = [...dependsOn(key, queries.list, dims)].find((x) => x !== dim)
  if (other)
    return report.error({
      code: 'check/sort-key',
      message: `a sort of ${dim} has one key for each ${dim}, and this one depends on ${other}`,
      span: s.by.span,
      expected: `${dim}, parameters, and what is counted or least by ${dim}`,
    })
  return {
    place: s.place.name,
    at: s.at.name,
    dim,
    of: variable(dim),
    extent: axis?.extent ?? variable(dim),
    key,
    queries: queries.list,
    within,
    span: s.span,
  }
}

/** The coordinate on an axis before its sort: the map has its place there. */
function sortedOn(
  s: Ast.Sort,
  map: Expr,
  sorts: readonly Ast.Sort[],
  { list }: Queries,
  { report }: FormatScope,
): Expr | null {
  const q = map.kind === 'var' ? list.find((x) => x.name === map.name) : undefined
  if (q?.kind !== 'place' || q.sort !== s.place.name)
    return report.error({
      code: 'check/sort-key',
      message: `axis ${s.dim.name} is sorted, and the map has no place of that sort for it`,
      span: s.dim.span,
      expected: `${s.place.name}[…] in the map, for ${s.dim.name}`,
    })
  const before = sorts.slice(0, sorts.indexOf(s)).map((x) => x.place.name)
  const late = neededBy(q.of, list)
    .flatMap((x) => sourceOf(x, 'sort') ?? [])
    .find((name) => !before.includes(name))
  if (late !== undefined)
    return report.error({
      code: 'check/sort-key',
      message: `the sort of ${s.dim.name} asks for ${late}[…], a place in a sort that is not before it`,
      span: s.span,
      expected: 'places in sorts that are declared before',
    })
  return q.of
}

export function unknownDimension(
  name: Ast.Ident,
  over: readonly string[],
  p: Pick<FormatScope, 'report' | 'what'>,
): null {
  return p.report.error({
    code: 'check/unknown-dimension',
    message: `${p.what} has no dimension ${name.name}`,
    span: name.span,
    expected: over.join(', '),
    lookup: { name: name.name, candidates: over },
  })
}

interface MapPlace {
  readonly head: Head
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly place: FormatScope
  readonly queries: Queries | string
}

/** The operands of a coordinate map may be renamed; the value has the names that the format declares. */
function coordMap(m: Ast.CoordMap, which: 'map' | 'inverse', at: MapPlace): readonly Expr[] | null {
  const { head, from, to, place } = at
  const { report } = place
  const wrong = (message: string, names: readonly { readonly span: Span }[], expected: string): null =>
    report.error({ code: 'check/map-arity', message, span: names[0]?.span ?? m.span, expected })
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
    return report.error({
      code: 'check/duplicate',
      message: `${which} has two meanings for ${twice.name}`,
      span: twice.span,
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
  const names = namesAt(here)
  const exprs = m.to.map((e) => integerAt(here, e, names, 'a coordinate'))
  return exprs.some((e) => e === null) ? null : (exprs as Expr[])
}

function condition(e: Ast.Expr, head: Head, place: FormatScope, queries: Queries): Expr | null {
  const here: FormatScope = {
    ...place,
    what: `the where of format ${head.name}`,
    values: new Map([...place.values, ...coordinatesOf(head.over)]),
    queries,
  }
  const { report } = place
  const t = elaborateExpr(e, namesAt(here), report)
  const holds = t && truth(t, e.span, report)
  const sorted = holds && [...queriesOf(holds, queries.list)].find((q) => sourceOf(q, 'sort'))
  if (!sorted) return holds
  return report.error({
    code: 'check/where-place',
    message: `what format ${head.name} holds is known before it is sorted, and this depends on the order`,
    span: e.span,
    expected: 'coordinates, parameters, and queries of the tensor',
  })
}
