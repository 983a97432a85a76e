/** The scopes of expressions in formats and compositions. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { FormatParam, FormatParamKind } from '../../ir/formats/format.ts'
import { type ExprType, isWord } from '../../ir/values/dtype.ts'
import { report } from '../diagnostics.ts'
import { type Names, settled } from '../expressions/expressions.ts'
import { asIndex } from '../expressions/type-conversion.ts'
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

export function integersAt(list: readonly Ast.Expr[], names: Names, what: string): Expr[] | null {
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
