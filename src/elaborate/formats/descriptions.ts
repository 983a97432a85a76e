/** Elaboration of formats that describe storage: axes, sorts and coordinate maps. */

import { levelProperties } from '../../ast/nodes/axis-kinds.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { isDense, isPadded, isStored, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { Format, Sort } from '../../ir/formats/format.ts'
import { sourceOf } from '../../ir/formats/queries.ts'
import { elaborateExpr, truth } from '../expressions/expressions.ts'
import { declareAxes } from '../kernels/axes.ts'
import { chainOf, type Declared, declare } from '../kernels/kernel-names.ts'
import { coordinatesOf, coordMap } from './coordinate-maps.ts'
import { declareLists, listNames, listsOf } from './format-lists.ts'
import { namesAt } from './format-names.ts'
import { givenOf, numbersOf } from './format-params.ts'
import type { FormatScope, Head, Numbers, SortNames } from './format-place.ts'
import { elaborateSort, notSorted, sortedOn } from './format-sorts.ts'
import { Queries, queriesOf } from './query-list.ts'

export function elaborateDescription(b: Ast.Description, head: Head, d: Declared): Format | null {
  const { report } = d
  for (const s of b.sorts) {
    declare(d, s.place, 'sort')
    declare(d, s.at, 'sort')
  }
  if (b.mask) declare(d, b.mask.name, 'mask')
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
    refused: d.broken,
    loads: true,
    dims: head.over,
    queries: '',
  }
  declareFormatAxes(b, head, place, d)
  const names = b.axes.map((a) => a.name.name)
  const order = b.axes.flatMap((a) => (a.list ? [] : [a.name.name]))
  const lists = listNames(b, d)
  const queries = new Queries(taken)
  const from = { head, from: head.over, to: names, place: { ...place, lists }, queries }
  const mapped = coordMap(b.map, 'map', from)
  const map = mapped && order.map((name) => mapped.exprs[names.indexOf(name)]!)
  const made = b.sorts.map((s): Sort | null => {
    const axis = head.over.includes(s.dim.name) ? undefined : d.axes.get(s.dim.name)
    const own = axis && isStored(axis) && isDense(axis) ? axis : undefined
    if (axis && !own) return notSorted(s.dim, axis, head.over, report)
    const sort = elaborateSort(s, head, place, taken, own)
    if (!sort || !own || !map) return sort
    const of = sortedOn(s, map[order.indexOf(own.name)]!, b.sorts, queries, place)
    return of && { ...sort, of }
  })
  const inverse = coordMap(b.inverse, 'inverse', {
    head,
    from: order,
    to: head.over,
    place: { ...place, lists },
    queries: 'an inverse goes from stored coordinates to those of the tensor; queries belong in the map',
  })
  const where = b.where && condition(b.where.cond, head, place, queries)
  if (b.axes.some((a) => d.broken.has(a.name.name))) return null
  if (!mapped || !map || !inverse || (b.where && !where) || made.some((s) => s === null)) return null
  return {
    kind: 'format',
    name: head.name,
    params: head.params,
    over: head.over,
    sorts: made as Sort[],
    queries: queries.list,
    axes: [...d.axes.values()].filter((a): a is StoredAxis => isStored(a) && order.includes(a.name)),
    lists: listsOf(lists, names, mapped, d),
    order,
    map,
    inverse: inverse.exprs,
    ...(b.mask && { mask: b.mask.name.name }),
    where,
    claims: b.axes.flatMap((a) =>
      a.list ? [] : a.claims.map((c) => ({ axis: a.name.name, claim: c.name })),
    ),
    span: head.span,
  }
}

function declareFormatAxes(b: Ast.Description, head: Head, place: FormatScope, d: Declared): void {
  const sizes = [...head.over, ...b.axes.flatMap((a) => (a.list ? [a.name.name] : []))]
  const dims: Numbers = new Map(sizes.map((name) => [name, { name, dtype: 'index' }]))
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
  declareLists(b, head, d)
  for (const a of b.axes)
    if (!levelProperties(a.def.kind))
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
        message: `axis ${a.name} is stored under ${padded}, whose padding is visited, and is not dense`,
        ...(a.span && { span: a.span }),
        expected: `dense_fixed axes under ${padded}`,
        hint: `without \`padded with\`, elements below the padding of ${padded} are skipped`,
      })
  }
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
    message: `the elements of ${head.name} are selected before the sort, and this condition depends on the order`,
    span: e.span,
    expected: 'coordinates, parameters, and queries of the tensor',
  })
}
