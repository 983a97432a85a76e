/** Functions of formats and compositions: queries, `segments` and `size`. */
import type * as Ast from '../ast/nodes.ts'
import { binary, cast, type Expr, int, variable } from '../ir/expr.ts'
import type { Names } from './expressions.ts'
import { integerAt, integersAt, type Place, queriesAt } from './format-place.ts'
import type { Queries } from './queries.ts'
import { plain, type Typed } from './type-conversion.ts'

/** Written as calls. */
export const QUERIES = ['count', 'rank', 'largest', 'top', 'density', 'held', 'find'] as const
type QueryName = (typeof QUERIES)[number]
const isQuery = (name: string): name is QueryName => (QUERIES as readonly string[]).includes(name)

/** For suggestions. */
export const FORMAT_FUNCTIONS: readonly string[] = [...QUERIES, 'segments', 'size']

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

/** `undefined` for a function of every place. */
export function callAt(p: Place, e: Ast.Call, names: Names): Typed | null | undefined {
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
      expected: 'a number, or a parameter of the format',
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
