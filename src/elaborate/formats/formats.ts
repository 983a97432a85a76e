/** Elaboration of formats: AST → `Format`, `Composition` or `FormatFamily`. */
import { type Diagnostic, failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { levelProperties } from '../../ast/nodes/axis-kinds.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { chainTo, isDense, isPadded, isStored, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { AnyFormat, Format, FormatFamily, OrderedFormat, Sort } from '../../ir/formats/format.ts'
import { sourceOf } from '../../ir/formats/queries.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { collectErrors, errorCount, report, reportAll, throwErrors } from '../diagnostics.ts'
import { condition } from '../expressions/expressions.ts'
import { declareAxes } from '../kernels/axes.ts'
import { type Declared, declare, nothingDeclared } from '../kernels/kernel-names.ts'
import { elaborateRules } from './compositions.ts'
import { coordinatesOf, coordMap } from './coordinate-maps.ts'
import { BEYOND, MAX_COPIES } from './dimension-list-names.ts'
import { listOver, writtenOut } from './dimension-lists.ts'
import { declareLists, listNames, listsOf } from './format-lists.ts'
import { declareFormatParams, givenOf, namesAt, numbersOf } from './format-names.ts'
import type { FormatScope, Head, Numbers, SortNames } from './format-place.ts'
import { elaborateSort, notSorted, sortedOn } from './format-sorts.ts'
import { type FindFormat, Queries, queriesOf } from './format-uses.ts'

/** The format. `find` returns the formats that a composition names. */
export function elaborateFormat(f: Ast.Format, find: FindFormat): AnyFormat | null {
  const write = (order: number): OrderedFormat | null => {
    const plain = writtenOut(f, order)
    return plain && ofOneOrder(plain, find)
  }
  if (!listOver(f)) return write(f.over.length)
  const over = f.over.map((o) => ({ name: o.name, list: o.all === true }))
  return familyOf({ name: f.name.name, over, span: f.name.span }, write)
}

function ofOneOrder(f: Ast.Format, find: FindFormat): OrderedFormat | null {
  const before = errorCount()
  const d = nothingDeclared()
  const params = declareFormatParams(d, f.params)
  for (const o of f.over) declare(d, o, 'dimension')
  const head = { name: f.name.name, params, over: f.over.map((o) => o.name), span: f.name.span }
  if (f.body.kind === 'description') {
    const made = elaborateDescription(f.body, head, d)
    return errorCount() > before ? null : made
  }
  const parts = elaborateRules(f.body.rules, {
    what: `format ${head.name}`,
    over: head.over,
    values: numbersOf(params),
    given: givenOf(params),
    find,
  })
  return errorCount() > before || !parts ? null : { kind: 'composition', ...head, parts }
}

// Formats for tensors of any order, whose text is expanded when the order is known.

/**
 * The number of list dimensions in the first trial expansion of a text, and of further trials if the text names more.
 */
const TRIED = 4
const MORE = 4

type FamilyHead = Pick<FormatFamily, 'name' | 'over' | 'span'>

/**
 * The format for any order. `write` returns the format for one order. The text is expanded for a trial order here, so
 * that errors in the text are found early.
 */
export function familyOf(
  head: FamilyHead,
  write: (order: number) => OrderedFormat | null,
): FormatFamily | null {
  const single = head.over.filter((o) => !o.list).length
  let tried: OrderedFormat | null = null
  let errors: readonly Diagnostic[] = []
  for (let length = TRIED; length <= TRIED + MORE && !tried; length++) {
    const trial = collectErrors(() => write(single + length))
    tried = trial.result
    errors = trial.errors
    if (errors.some((d) => d.code !== BEYOND && d.code !== 'format/order')) break
  }
  reportAll(...errors)
  if (!tried) return null
  const made = new Map<number, OrderedFormat>()
  const compute = (order: number): OrderedFormat => {
    if (order <= single) wrongOrder(head, order, `${head.over.length} dimensions or more`)
    if (order - single > MAX_COPIES) wrongOrder(head, order, `at most ${single + MAX_COPIES} dimensions`)
    const format = throwErrors(() => write(order))
    invariant(format, 'a format without errors')
    return format
  }
  const withOrder = (order: number): OrderedFormat => getOrAdd(made, order, () => compute(order))
  return { kind: 'family', ...head, params: tried.params, withOrder }
}

function wrongOrder({ name, over, span }: FamilyHead, order: number, expected: string): never {
  const names = over.map((o) => (o.list ? `${o.name}...` : o.name))
  return failWith(
    'format/order',
    `format ${name} is over (${names.join(', ')}), and this tensor has ${quantity(order, 'dimension')}`,
    { ...(span && { span }), expected },
  )
}

// Elaboration of formats that describe storage: axes, sorts and coordinate maps.

function elaborateDescription(b: Ast.Description, head: Head, d: Declared): Format | null {
  for (const s of b.sorts) {
    declare(d, s.place, 'sort')
    declare(d, s.at, 'sort')
  }
  if (b.mask) declare(d, b.mask.name, 'mask')
  const sorts: readonly SortNames[] = b.sorts.map((s) => ({ place: s.place.name, at: s.at.name }))
  const taken = new Set([...d.places.keys(), ...b.axes.map((a) => a.name.name)])
  const numbers = numbersOf(head.params)
  const place: FormatScope = {
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
    if (axis && !own) return notSorted(s.dim, axis, head.over)
    const sort = elaborateSort(s, head, place, taken, own)
    if (!sort || !own || !map) return sort
    const of = sortedOn(s, map[order.indexOf(own.name)]!, b.sorts, queries)
    return of && { ...sort, of }
  })
  const inverse = coordMap(b.inverse, 'inverse', {
    head,
    from: order,
    to: head.over,
    place: { ...place, lists },
    queries: 'an inverse goes from stored coordinates to those of the tensor; queries belong in the map',
  })
  const where = b.where && formatCondition(b.where.cond, head, place, queries)
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
      report('check/format-view', a.span, {
        message: `axis ${a.name.name} of format ${head.name} is ${a.def.kind}: a view that stores nothing`,
        expected: 'dense and sparse axes',
      })
  for (const a of d.axes.values()) {
    const above = isStored(a) && !isDense(a) ? chainTo(d.axes, a.name).slice(0, -1) : []
    const padded = above.find((name) => isPadded(d.axes.get(name)!))
    if (padded !== undefined)
      report('check/under-padding', a.span, {
        message: `axis ${a.name} is stored under ${padded}, whose padding is visited, and is not dense`,
        expected: `dense_fixed axes under ${padded}`,
        hint: `without \`padded with\`, elements below the padding of ${padded} are skipped`,
      })
  }
}

function formatCondition(e: Ast.Expr, head: Head, place: FormatScope, queries: Queries): Expr | null {
  const here: FormatScope = {
    ...place,
    what: `the where of format ${head.name}`,
    values: new Map([...place.values, ...coordinatesOf(head.over)]),
    queries,
  }
  const holds = condition(e, namesAt(here))
  const sorted = holds && [...queriesOf(holds, queries.list)].find((q) => sourceOf(q, 'sort'))
  if (!sorted) return holds
  return report('check/where-place', e.span, {
    message: `the elements of ${head.name} are selected before the sort, and this condition depends on the order`,
    expected: 'coordinates, parameters, and queries of the tensor',
  })
}
