/** The scopes of expressions in formats and compositions, and the functions that these expressions may call. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import type { FormatParam, FormatParamKind } from '../../ir/formats/format.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'
import { QUERY_WORDS, queryWords } from '../../ir/formats/queries.ts'
import { type ExprType, isWord } from '../../ir/values/dtype.ts'
import { report } from '../diagnostics.ts'
import { type Names, settled } from '../expressions/expressions.ts'
import { asIndex, plain, type Typed } from '../expressions/type-conversion.ts'
import type { Queries } from './format-uses.ts'

/** The names of a sort: `place` maps a coordinate to its place, `at` maps a place to its coordinate. */
export interface SortNames {
  readonly place: string
  readonly at: string
}

export interface Head {
  readonly name: string
  readonly params: readonly FormatParam[]
  readonly over: readonly string[]
  readonly span: Span
}

export interface ListName {
  readonly name: string
  readonly under: readonly string[]
}

/** Numbers by their names in the text: parameters and coordinates. */
export type Numbers = ReadonlyMap<
  string,
  { readonly name: string; readonly dtype: ExprType; readonly coordinate?: true }
>

export interface FormatScope {
  /** A description for messages, such as `the map of format blocks`. */
  readonly what: string
  readonly values: Numbers
  /** The code of errors about unknown names. */
  readonly unknown?: string
  readonly given: ListAndSetParams
  /** The extent of a dimension by its name in this scope; null if `size` cannot be used. */
  readonly size: ((dim: string) => string | undefined) | null
  readonly sorts: readonly SortNames[]
  readonly lists?: readonly ListName[]
  /** Names of declarations with errors: errors about their uses are not reported. */
  readonly refused?: ReadonlySet<string>
  /** The position of an element's coordinate in a list; in maps only. */
  readonly position?: (list: string, span: Span) => Expr | null
  /** True if arrays (tables of sorts, and lists) can be read. */
  readonly loads: boolean
  readonly dims: readonly string[]
  /** The list that queries are added to; a hint for the error if queries are not allowed. */
  readonly queries: Queries | string
}

export interface ListAndSetParams {
  readonly kinds: ReadonlyMap<string, FormatParamKind>
  /**
   * Declares a name as a list or set of the data, and returns true; undefined if names must be declared in the text.
   */
  readonly declare?: (name: string, kind: 'list' | 'set', span: Span) => boolean
}

/**
 * True if a name is a list or set. If lists and sets are not declared in the text, the use of a name declares the name.
 */
export const isGiven = (
  { given, values }: FormatScope,
  name: string,
  kind: 'list' | 'set',
  span: Span,
): boolean =>
  given.kinds.get(name) === kind || (!values.has(name) && given.declare?.(name, kind, span) === true)

export const expectedNames = (p: FormatScope): string =>
  p.values.size > 0 ? [...p.values.keys()].join(', ') : 'a constant'

export function integerAt(e: Ast.Expr, names: Names, what: string): Expr | null {
  const x = settled(e, names)
  if (!x || isWord(x.dtype)) return x && asIndex(x)
  return report('check/coordinate-type', e.span, {
    message: `${what} is an integer, and this is ${x.dtype === 'f64' || x.dtype === 'f32' ? 'a real number' : x.dtype}`,
    hint: x.dtype === 'bool' ? 'convert the value: i32(…)' : 'round the value: `i32(floor(…))`',
  })
}

function integersAt(list: readonly Ast.Expr[], names: Names, what: string): Expr[] | null {
  const out = list.map((e) => integerAt(e, names, what))
  return out.some((e) => e === null) ? null : (out as Expr[])
}

/** The list that queries are added to; null after a reported error, if queries are not allowed. */
export function queriesAt(p: FormatScope, fn: string, span: Span): Queries | null {
  if (typeof p.queries !== 'string') return p.queries
  return report('check/query-place', span, {
    message: `${fn} depends on the stored elements of a tensor, which is not allowed in ${p.what}`,
    hint: p.queries,
  })
}

// Functions in the expressions of formats and compositions: queries, `segments`, `size` and `position`.

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
  const [of, by] = [operands, e.by ?? []].map((list) => integersAt(list, names, `an operand of ${fn}`))
  if (source === null || !of || !by) return null
  if (!enough) return wrong()
  const dims = p.dims.map((d) => variable(d))
  const written = { list: source, set: source, of, by, dims, span: e.span }
  return plain(word.expand(written, (q) => queries.add(q, e.span)))
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
