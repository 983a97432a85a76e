/** Functions in the expressions of formats and compositions: queries, `segments`, `size` and `position`. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { variable } from '../../ir/expressions/expr.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'
import { QUERY_WORDS, queryWords } from '../../ir/formats/queries.ts'
import { report } from '../diagnostics.ts'
import type { Names } from '../expressions/expressions.ts'
import { plain, type Typed } from '../expressions/type-conversion.ts'
import { type FormatScope, integersAt, isGiven, queriesAt } from './format-place.ts'

const FORMS = {
  segments: 'segments(rows), where rows is a list',
  size: 'size(i), where i is a dimension',
  position: 'position(jo), where jo is a list of the format',
}

export const FORMAT_FUNCTIONS: readonly string[] = [
  ...queryWords((w) => w.takes !== null),
  ...Object.keys(FORMS),
]

/** The value of a call; undefined for functions of every place. */
export function callAt(p: FormatScope, e: Ast.Call, names: Names): Typed | null | undefined {
  const fn = e.fn.name
  if (fn === 'segments') return segmentsAt(p, e)
  if (fn === 'size') return sizeAt(p, e)
  if (fn === 'position') return positionAt(p, e)
  const word = QUERY_WORDS.get(fn)
  if (!word?.takes) return undefined
  const queries = queriesAt(p, fn, e.span)
  if (!queries) return null
  const wrong = (): null =>
    report('check/query-arguments', e.span, {
      message: `invalid arguments of ${fn}`,
      expected: word.form,
    })
  if (e.by && !word.takesBy) return wrong()
  const operands = word.sourceKind ? e.args.slice(1) : e.args
  const enough = word.takes(operands.length, p.dims.length)
  if (word.sourceKind && (e.args.length === 0 || !enough)) return wrong()
  const source = word.sourceKind ? givenName(p, e.args[0]!, word.sourceKind, fn) : ''
  const of = integersAt(operands, names, `what ${fn} is asked of`)
  const by = integersAt(e.by ?? [], names, `what ${fn} is asked of`)
  if (source === null || !of || !by) return null
  if (!enough) return wrong()
  const dims = p.dims.map((d) => variable(d))
  const written = { list: source, set: source, of, by, dims, span: e.span }
  return plain(word.expand(written, (q) => queries.ask(q, e.span)))
}

function segmentsAt(p: FormatScope, e: Ast.Call): Typed | null {
  const list = e.args.length === 1 && !e.by && givenName(p, e.args[0]!, 'list', 'segments')
  if (list !== false) return list === null ? null : plain(variable(segmentsOf(list), 'index', e.span))
  return report('check/query-arguments', e.span, {
    message: 'invalid arguments of segments',
    expected: FORMS.segments,
  })
}

function sizeAt(p: FormatScope, e: Ast.Call): Typed | null {
  const [dim] = e.args
  const known = dim?.kind === 'name' ? p.size?.(dim.name) : undefined
  if (known !== undefined && e.args.length === 1 && !e.by) return plain(variable(known, 'index', e.span))
  if (!p.size)
    return report('check/query-place', e.span, {
      message: `${p.what} is a constant, and size is known only when data are bound`,
      expected: 'a number, or a parameter of the format',
    })
  return report('check/query-arguments', dim?.span ?? e.span, {
    message: dim?.kind === 'name' ? `${dim.name} is not a dimension` : 'invalid arguments of size',
    expected: FORMS.size,
    ...(dim?.kind === 'name' && { lookup: { name: dim.name, candidates: p.dims } }),
  })
}

function positionAt(p: FormatScope, e: Ast.Call): Typed | null {
  const [list] = e.args
  const known =
    list?.kind === 'name' && p.lists?.some((l) => l.name === list.name) && e.args.length === 1 && !e.by
  if (known && p.position) {
    const at = p.position(list.name, e.span)
    return at && plain(at)
  }
  if (known)
    return report('check/query-place', e.span, {
      message: `position(${list.name}) is not allowed in ${p.what}`,
      hint: `the coordinate at a position is ${list.name}[…]`,
    })
  if (list?.kind === 'name' && p.refused?.has(list.name)) return null
  return report('check/query-arguments', list?.span ?? e.span, {
    message:
      list?.kind === 'name' ? `${list.name} is not a list of the format` : 'invalid arguments of position',
    expected: FORMS.position,
    ...(list?.kind === 'name' && {
      lookup: { name: list.name, candidates: (p.lists ?? []).map((l) => l.name) },
    }),
  })
}

function givenName(p: FormatScope, e: Ast.Expr, kind: 'list' | 'set', fn: string): string | null {
  if (e.kind === 'name' && isGiven(p, e.name, kind, e.span)) return e.name
  return report('check/not-given', e.span, {
    message: `${fn} takes the name of a ${kind}${e.kind === 'name' ? `, not ${e.name}` : ''}`,
    expected: `a parameter \`NAME: ${kind}\``,
    ...(e.kind === 'name' && {
      lookup: {
        name: e.name,
        candidates: [...p.given.kinds].flatMap(([name, k]) => (k === kind ? [name] : [])),
      },
    }),
  })
}
