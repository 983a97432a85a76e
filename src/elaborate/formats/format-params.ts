/** Declaration of the parameters of formats. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { FormatParam, FormatParamKind } from '../../ir/formats/format.ts'
import type { Report } from '../diagnostics.ts'
import { elaborateExpr } from '../expressions/expressions.ts'
import { coerce } from '../expressions/type-conversion.ts'
import { type Declared, declare } from '../kernels/kernel-names.ts'
import { namesAt } from './format-names.ts'
import { type FormatScope, integerAt, type ListAndSetParams, type Numbers } from './format-place.ts'

export function declareFormatParams(d: Declared, list: readonly Ast.FormatParam[]): FormatParam[] {
  const params: FormatParam[] = []
  for (const p of list) {
    declare(d, p.name, 'parameter')
    const measured = p.type === 'size'
    const kind: FormatParamKind = p.type === 'size' ? 'integer' : p.type
    const before = constantPlace(d.report, numbersOf(params), givenOf(params), 'a default')
    const fallback =
      p.default && numberAt(before, p.default, kind === 'real' ? 'real' : 'integer', p.name.name)
    params.push({ name: p.name.name, kind, default: fallback, measured, span: p.span })
  }
  return params
}

/** Returns the numeric parameters. A real parameter is an f64, because the host computes with it. */
export const numbersOf = (params: readonly FormatParam[]): Numbers =>
  new Map(
    params.flatMap(({ name, kind }) =>
      kind === 'integer' || kind === 'real'
        ? [[name, { name, dtype: kind === 'real' ? 'f64' : 'index' }] as const]
        : [],
    ),
  )

/** Returns the parameters that are lists and sets in the data. */
export const givenOf = (params: readonly FormatParam[]): ListAndSetParams => ({
  kinds: new Map(
    params.flatMap(({ name, kind }) => (kind === 'list' || kind === 'set' ? [[name, kind] as const] : [])),
  ),
})

/** Returns the scope of constants: parameters, but nothing that depends on data. */
export const constantPlace = (
  report: Report,
  values: Numbers,
  given: ListAndSetParams,
  what: string,
): FormatScope => ({
  report,
  what,
  values,
  given,
  size: null,
  sorts: [],
  loads: false,
  dims: [],
  queries: 'it is a constant: parameters and arithmetic',
})

/** Returns an expression for a parameter: i32, or f64 for a real one; null after a reported error. */
export function numberAt(p: FormatScope, e: Ast.Expr, kind: 'integer' | 'real', what: string): Expr | null {
  const names = namesAt(p)
  if (kind === 'integer') return integerAt(p, e, names, what)
  const t = elaborateExpr(e, names, p.report)
  return t && coerce(t, 'f64', what, e.span, p.report)
}
