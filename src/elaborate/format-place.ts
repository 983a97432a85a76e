/** The places of formats and compositions where expressions stand, and what can be said there. */
import type { Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import type { FormatParam, FormatParamKind } from '../ir/format.ts'
import type { Report } from './diagnostics.ts'
import { elaborateExpr, type Names } from './expressions.ts'
import type { Queries } from './query-list.ts'
import { settle } from './type-conversion.ts'

/** What a sort is called: where a coordinate goes, and which one stands at a place. */
export interface SortNames {
  readonly place: string
  readonly at: string
}

/** What stands before the body of a format. */
export interface Head {
  readonly name: string
  readonly params: readonly FormatParam[]
  readonly over: readonly string[]
  readonly span: Span
}

/** A list of the format, and the axes above it. */
export interface ListName {
  readonly name: string
  readonly under: readonly string[]
}

/** Numbers, by their name in the text: parameters, and coordinates. */
export type Numbers = ReadonlyMap<
  string,
  { readonly name: string; readonly dtype: Dtype; readonly coordinate?: true }
>

/** One place of a format: what can be said there. */
export interface FormatScope {
  readonly report: Report
  /** For messages: `the map of format blocks`. */
  readonly what: string
  readonly values: Numbers
  /** Code for a name that is unknown here. */
  readonly unknown?: string
  readonly given: ListAndSetParams
  /** The extent of a dimension by its name here; `null`: `size` cannot be used. */
  readonly size: ((dim: string) => string | undefined) | null
  readonly sorts: readonly SortNames[]
  readonly lists?: readonly ListName[]
  /** Names of what was refused where it is declared: what depends on it is not refused again. */
  readonly refused?: ReadonlySet<string>
  /** Asks for the place of an element's coordinate in a list; only maps can. */
  readonly position?: (list: string, span: Span) => Expr | null
  /** Whether arrays, the tables of sorts and lists, can be read. */
  readonly loads: boolean
  readonly dims: readonly string[]
  /** Where queries go; a text that says why there can be none. */
  readonly queries: Queries | string
}

/** List and set parameters. */
export interface ListAndSetParams {
  readonly kinds: ReadonlyMap<string, FormatParamKind>
  /** Takes a name that is not declared as a list or set of the data. */
  readonly declare?: (name: string, kind: 'list' | 'set', span: Span) => boolean
}

/** Whether a list or set is called so; where none are declared, what a name is used for says what it is. */
export const isGiven = (
  { given, values }: FormatScope,
  name: string,
  kind: 'list' | 'set',
  span: Span,
): boolean =>
  given.kinds.get(name) === kind || (!values.has(name) && given.declare?.(name, kind, span) === true)

/** What can be named there. */
export const expectedNames = (p: FormatScope): string =>
  p.values.size > 0 ? [...p.values.keys()].join(', ') : 'a constant'

/** An i32 operand. */
export function integerAt(p: FormatScope, e: Ast.Expr, names: Names, what: string): Expr | null {
  const t = elaborateExpr(e, names, p.report)
  const x = t && settle(t, e.span, p.report, 'f64')
  if (!x || x.dtype === 'i32') return x
  return p.report.error({
    code: 'check/coordinate-type',
    message: `${what} is an integer, and this is ${x.dtype === 'f64' || x.dtype === 'f32' ? 'a real number' : x.dtype}`,
    span: e.span,
    hint: x.dtype === 'bool' ? 'convert it explicitly: i32(…)' : 'round it: `i32(floor(…))`',
  })
}

export function integersAt(
  p: FormatScope,
  list: readonly Ast.Expr[],
  names: Names,
  what: string,
): Expr[] | null {
  const out = list.map((e) => integerAt(p, e, names, what))
  return out.some((e) => e === null) ? null : (out as Expr[])
}

/** Where queries go; with an error where there can be none. */
export function queriesAt(p: FormatScope, fn: string, span: Span): Queries | null {
  if (typeof p.queries !== 'string') return p.queries
  return p.report.error({
    code: 'check/query-place',
    message: `${fn} depends on the stored elements of a tensor, which is not allowed in ${p.what}`,
    span,
    hint: p.queries,
  })
}
