/** What names, accesses and calls mean in the expressions of formats and compositions. */
import type { Span } from '../../ast/diagnostic.ts'
import type * as Ast from '../../ast/nodes.ts'
import type { Dtype } from '../dtype.ts'
import { binary, cast, type Expr, int, load, variable } from '../expr.ts'
import type { FormatParamKind } from '../format.ts'
import { elaborateExpr, FUNCTIONS, type Names } from './expressions.ts'
import type { Queries } from './queries.ts'
import type { Report } from './report.ts'
import { plain, settle, type Typed } from './types.ts'

/** What a sort is called: where a coordinate goes, and which one stands at a place. */
export interface SortNames {
  readonly place: string
  readonly at: string
}

/** One place of a format: what can be said there. */
export interface Place {
  readonly report: Report
  /** For messages: `the map of format blocks`. */
  readonly what: string
  /** Numbers, by their name in the text. */
  readonly values: ReadonlyMap<string, { readonly name: string; readonly dtype: Dtype }>
  /** Code for a name that is unknown here. */
  readonly unknown?: string
  readonly given: Given
  /** The extent of a dimension by its name here; `null`: `size` cannot be used. */
  readonly size: ((dim: string) => string | undefined) | null
  readonly sorts: readonly SortNames[]
  /** Whether arrays, the tables of sorts and lists, can be read. */
  readonly loads: boolean
  readonly dims: readonly string[]
  /** Where queries go; a text that says why there can be none. */
  readonly queries: Queries | string
}

/** List and set parameters. */
export interface Given {
  readonly kinds: ReadonlyMap<string, FormatParamKind>
  /** Takes a name that is not declared as a list or set of the data. */
  readonly declare?: (name: string, kind: 'list' | 'set', span: Span) => boolean
}

const QUERIES = ['count', 'rank', 'largest', 'top', 'density', 'held', 'find'] as const
type QueryName = (typeof QUERIES)[number]
const isQuery = (name: string): name is QueryName => (QUERIES as readonly string[]).includes(name)

/** How each is written, for messages. */
const FORMS: Readonly<Record<QueryName | 'segments' | 'size', string>> = {
  count: 'count(j by i)',
  rank: 'rank(j by i)',
  largest: 'largest(by i)',
  top: 'top(n by i)',
  density: 'density(b), or one size for each dimension',
  held: 'held(m), where m is a set',
  find: 'find(rows, i), where rows is a list',
  segments: 'segments(rows), where rows is a list',
  size: 'size(i), where i is a dimension',
}

export function namesAt(p: Place): Names {
  const names: Names = {
    name: (e) => nameAt(p, e),
    access: (e) => accessAt(p, e, names),
    field: (e) => {
      const value = p.values.get(`${e.object.name}.${e.field.name}`)
      if (value) return plain(variable(value.name, value.dtype, e.span))
      return p.report.error({
        code: 'check/unknown-name',
        message: `${e.object.name}.${e.field.name} means nothing in ${p.what}`,
        span: e.span,
      })
    },
    call: (e) => callAt(p, e, names),
    functions: [...FUNCTIONS, ...QUERIES, 'segments', 'size'],
  }
  return names
}

function nameAt(p: Place, e: Ast.Name): Typed | null {
  const { report } = p
  const value = p.values.get(e.name)
  if (value) return plain(variable(value.name, value.dtype, e.span))
  if (e.name === 'value') {
    const q = queriesAt(p, 'value', e.span)
    return q && plain(q.ask({ kind: 'value' }, e.span))
  }
  const kind = p.given.kinds.get(e.name)
  if (kind === 'list' || kind === 'set')
    return report.error({
      code: 'check/not-a-number',
      message: `${e.name} is a ${kind}, not a number`,
      span: e.span,
      expected:
        kind === 'list' ? `${e.name}[…], find(${e.name}, …) or segments(${e.name})` : `held(${e.name})`,
    })
  const sort = p.sorts.find((s) => s.place === e.name || s.at === e.name)
  if (sort)
    return report.error({
      code: 'check/not-a-number',
      message: `${e.name} is an order, not a number`,
      span: e.span,
      expected: `${sort.place}[…] in a map, ${sort.at}[…] in an inverse`,
    })
  return report.error({
    code: p.unknown ?? 'check/unknown-name',
    message: `there is no ${e.name} in ${p.what}`,
    span: e.span,
    expected: p.values.size > 0 ? [...p.values.keys()].join(', ') : 'a constant',
    lookup: { name: e.name, candidates: [...p.values.keys()] },
  })
}

/** An i32 operand. */
export function integerAt(p: Place, e: Ast.Expr, names: Names, what: string): Expr | null {
  const t = elaborateExpr(e, names, p.report)
  const x = t && settle(t, e.span, p.report)
  if (!x || x.dtype === 'i32') return x
  return p.report.error({
    code: 'check/coordinate-type',
    message: `${what} is an integer, and this is ${x.dtype === 'f64' || x.dtype === 'f32' ? 'a real number' : x.dtype}`,
    span: e.span,
    ...(x.dtype === 'bool' ? {} : { hint: 'round it: `i32(floor(…))`' }),
  })
}

function integersAt(p: Place, list: readonly Ast.Expr[], names: Names, what: string): Expr[] | null {
  const out = list.map((e) => integerAt(p, e, names, what))
  return out.some((e) => e === null) ? null : (out as Expr[])
}

function accessAt(p: Place, e: Ast.Access, names: Names): Typed | null {
  const { report } = p
  const { name } = e.buffer
  const sort = p.sorts.find((s) => s.place === name || s.at === name)
  const list = p.given.kinds.get(name) === 'list'
  if (!sort && !list)
    return report.error({
      code: 'check/unknown-buffer',
      message: `there is no array ${name} in ${p.what}`,
      span: e.buffer.span,
      expected: 'a list parameter, or a name of a sort',
      lookup: {
        name,
        candidates: [...p.sorts.flatMap((s) => [s.place, s.at]), ...p.given.kinds.keys()],
      },
    })
  const [index, more] = e.index
  if (!index || more)
    return report.error({
      code: 'check/index-count',
      message: `${name} has one dimension, and ${e.index.length} indices are given`,
      span: e.span,
      expected: `${name}[…]`,
    })
  if (!p.loads)
    return report.error({
      code: 'check/array-here',
      message: `${name}[…] cannot be used in ${p.what}`,
      span: e.span,
      hint: 'what is stored in arrays is known only with the data',
    })
  const x = integerAt(p, index, names, 'an index')
  if (!x) return null
  if (list) return plain(load(name, [x], 'i32', e.span))
  return sorted(p, e, sort!, x)
}

/** Maps ask for the place of a coordinate, inverses look up the coordinate at a place. */
function sorted(p: Place, e: Ast.Access, sort: SortNames, x: Expr): Typed | null {
  const { report } = p
  const { queries } = p
  const place = e.buffer.name === sort.place
  if (place && typeof queries !== 'string')
    return plain(queries.ask({ kind: 'place', sort: sort.place, of: x }, e.span))
  if (!place && typeof queries === 'string') return plain(load(sort.at, [x], 'i32', e.span))
  return place
    ? report.error({
        code: 'check/query-place',
        message: `${sort.place}[…] asks for the place of a coordinate, which ${p.what} cannot`,
        span: e.span,
        hint: `the coordinate at a place is ${sort.at}[…]`,
      })
    : report.error({
        code: 'check/table-in-map',
        message: `${sort.at}[…] is the coordinate at a place, for an inverse; this is ${p.what}`,
        span: e.span,
        hint: `the place of a coordinate is ${sort.place}[…]`,
      })
}

/** Where queries go; with an error where there can be none. */
function queriesAt(p: Place, fn: string, span: Span): Queries | null {
  if (typeof p.queries !== 'string') return p.queries
  return p.report.error({
    code: 'check/query-place',
    message: `${fn} asks what a tensor holds, which ${p.what} cannot`,
    span,
    hint: p.queries,
  })
}

function callAt(p: Place, e: Ast.Call, names: Names): Typed | null | undefined {
  const fn = e.fn.name
  if (fn === 'segments') return segmentsAt(p, e)
  if (fn === 'size') return sizeAt(p, e)
  if (!isQuery(fn)) return undefined
  const queries = queriesAt(p, fn, e.span)
  if (!queries) return null
  const wrong = (): null =>
    p.report.error({
      code: 'check/query-arguments',
      message: `${fn} is not written like this`,
      span: e.span,
      expected: FORMS[fn],
    })
  const grouped = fn === 'count' || fn === 'rank' || fn === 'largest' || fn === 'top'
  if (e.by && !grouped) return wrong()
  const what = `what ${fn} is asked of`
  if (fn === 'held') {
    const set = e.args.length === 1 && givenName(p, e.args[0]!, 'set', fn)
    if (set === false) return wrong()
    return set === null ? null : plain(binary('ne', queries.ask({ kind: 'held', set }, e.span), int(0)))
  }
  if (fn === 'find') {
    const list = e.args.length === 2 && givenName(p, e.args[0]!, 'list', fn)
    if (list === false) return wrong()
    const of = integerAt(p, e.args[1]!, names, what)
    return list !== null && of ? plain(queries.ask({ kind: 'find', list, of }, e.span)) : null
  }
  const args = integersAt(p, e.args, names, what)
  const by = integersAt(p, e.by ?? [], names, what)
  if (!args || !by) return null
  switch (fn) {
    case 'count':
    case 'rank':
      if (args.length === 0) return wrong()
      return plain(queries.ask({ kind: fn, of: args, by }, e.span))
    case 'largest':
      if (args.length > 0) return wrong()
      return plain(queries.ask({ kind: fn, by }, e.span))
    case 'top':
      if (args.length !== 1) return wrong()
      return plain(binary('lt', queries.ask({ kind: 'largest', by }, e.span), args[0]!, e.span))
    case 'density':
      return density(p, e, args, queries) ?? wrong()
  }
}

/** The share of a block's coordinates that are held: blocks are aligned, those at the edge count in full. */
function density(p: Place, e: Ast.Call, args: readonly Expr[], queries: Queries): Typed | undefined {
  const coordinates = p.dims.map((d) => variable(d))
  const [first] = args
  if (!first || (args.length !== 1 && args.length !== coordinates.length)) return undefined
  const sizes = coordinates.map((_, k) => (args.length === 1 ? first : args[k]!))
  const by = coordinates.map((c, k) => binary('div', c, sizes[k]!, e.span))
  const held = queries.ask({ kind: 'count', of: coordinates, by }, e.span)
  const all = sizes.reduce((a, b) => binary('mul', a, b))
  return plain(binary('div', cast(held, 'f64'), cast(all, 'f64'), e.span))
}

function segmentsAt(p: Place, e: Ast.Call): Typed | null {
  const list = e.args.length === 1 && !e.by && givenName(p, e.args[0]!, 'list', 'segments')
  if (list !== false) return list === null ? null : plain(variable(`${list}_segments`, 'i32', e.span))
  return p.report.error({
    code: 'check/query-arguments',
    message: 'segments is not written like this',
    span: e.span,
    expected: FORMS.segments,
  })
}

function sizeAt(p: Place, e: Ast.Call): Typed | null {
  const [dim] = e.args
  const known = dim?.kind === 'name' ? p.size?.(dim.name) : undefined
  if (known !== undefined && e.args.length === 1 && !e.by) return plain(variable(known, 'i32', e.span))
  if (!p.size)
    return p.report.error({
      code: 'check/query-place',
      message: `size is known only with the data, and ${p.what} is a constant`,
      span: e.span,
    })
  return p.report.error({
    code: 'check/query-arguments',
    message: dim?.kind === 'name' ? `${dim.name} is no dimension` : 'size is not written like this',
    span: dim?.span ?? e.span,
    expected: FORMS.size,
    ...(dim?.kind === 'name' && { lookup: { name: dim.name, candidates: p.dims } }),
  })
}

/** A list or set by name. */
function givenName(p: Place, e: Ast.Expr, kind: 'list' | 'set', fn: string): string | null {
  if (e.kind === 'name') {
    if (p.given.kinds.get(e.name) === kind) return e.name
    const free = !p.given.kinds.has(e.name) && !p.values.has(e.name)
    if (free && p.given.declare?.(e.name, kind, e.span)) return e.name
  }
  return p.report.error({
    code: 'check/not-given',
    message: `${fn} takes the name of a ${kind}${e.kind === 'name' ? `, and ${e.name} is none` : ''}`,
    span: e.span,
    expected: `a parameter \`NAME: ${kind}\``,
    ...(e.kind === 'name' && {
      lookup: {
        name: e.name,
        candidates: [...p.given.kinds].flatMap(([name, k]) => (k === kind ? [name] : [])),
      },
    }),
  })
}
