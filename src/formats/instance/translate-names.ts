/** Translation of a format's expressions into the names of a kernel. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { unusedNumber } from '../../ir/expressions/bound-names.ts'
import { type Expr, load, variable } from '../../ir/expressions/expr.ts'
import { children, freeVars, withChildren } from '../../ir/expressions/expr-tree.ts'
import type { Format, OrderedFormat } from '../../ir/formats/format.ts'
import { labelled, segmentsOf, tablesOf } from '../../ir/formats/format-tables.ts'
import { declarationOf, mapQuery, operandsOf, type Query, queryKey } from '../../ir/formats/queries.ts'
import { exprPrinter, plainConstant } from '../../ir/print/print-expr.ts'
import { isDivision } from '../../ir/values/evaluate.ts'
import { type Arguments, segments, signature, spanOf } from './format-arguments.ts'

/** The meaning of a format's names in one context. */
export interface Scope {
  readonly format: OrderedFormat
  readonly variables: ReadonlyMap<string, Expr>
  /** Loaded tables: name in the format → table, or the list among the data. */
  readonly tables: ReadonlyMap<string, string>
  /** Sorts (by `place`), lists and sets: name in the format → name outside. */
  readonly sources: ReadonlyMap<string, string>
}

/** The scope of a map: a dimension is the coordinate on it, `size(dim)` its extent. */
export function scopeOf(format: OrderedFormat, args: Arguments, over: readonly StoredAxis[]): Scope {
  const variables = new Map(args.values)
  format.over.forEach((name, k) => {
    variables.set(name, variable(over[k]!.name))
    variables.set(sizeOf(name), over[k]!.extent)
  })
  const sources = new Map<string, string>()
  const tables = new Map<string, string>()
  for (const [param, { name, kind }] of args.given) {
    sources.set(param, name)
    if (kind === 'set') continue
    tables.set(param, name)
    variables.set(segmentsOf(param), segments(name))
  }
  return { format, variables, tables, sources }
}

export const sizeOf = (dim: string): string => `size(${dim})`

/** The scope of extents and widths, where a dimension is its extent. */
export function extentScope(scope: Scope, over: readonly StoredAxis[]): Scope {
  const extents = scope.format.over.map((name, k) => [name, over[k]!.extent] as const)
  return { ...scope, variables: new Map([...scope.variables, ...extents]) }
}

export const withVariables = (scope: Scope, bindings: Iterable<readonly [string, Expr]>): Scope => ({
  ...scope,
  variables: new Map([...scope.variables, ...bindings]),
})

/** Translates `e` into the names of the kernel. @throws SptError `format/division-by-zero` */
export function translate(e: Expr, scope: Scope): Expr {
  // Top-down: a name outside may equal one of the format's own, and must not be replaced again.
  const visit = (x: Expr): Expr => {
    if (x.kind === 'var') return scope.variables.get(x.name) ?? x
    const rebuilt = withChildren(x, children(x).map(visit))
    if (isDivision(x)) checkDivisor(x.b, visit(x.b), scope)
    const table = x.kind === 'load' ? scope.tables.get(x.buffer) : undefined
    return table !== undefined && rebuilt.kind === 'load'
      ? load(table, rebuilt.index, x.dtype, x.span)
      : rebuilt
  }
  return visit(e)
}

/** `translate` for a coordinate, keeping the span even for a bare name. */
export function translateCoordinate(e: Expr, scope: Scope): Expr {
  const translated = translate(e, scope)
  return translated.kind === 'var' && e.span && !translated.span
    ? variable(translated.name, translated.dtype, e.span)
    : translated
}

/** Rejects a divisor that is not positive. `declared`: the divisor in the format's declaration. */
function checkDivisor(declared: Expr, divisor: Expr, { format }: Scope): void {
  if (divisor.kind !== 'const' || divisor.value > 0) return
  failWith(
    'format/division-by-zero',
    `format ${format.name} divides by ${declaredWithValue(declared, divisor.value)}`,
    {
      ...spanOf(declared.span, format.span),
      expected: declared.kind === 'const' ? 'a positive divisor' : `a positive ${declaredText(declared)}`,
      hint:
        declared.kind === 'const'
          ? 'in formats, constant divisors are positive: 1 or more'
          : `pass positive arguments: ${signature(format)}`,
    },
  )
}

const declaredText = exprPrinter(plainConstant)

/** `b, which is 0`: an expression of the format's declaration, and its value. */
export const declaredWithValue = (e: Expr, value: number): string =>
  e.kind === 'const' ? String(value) : `${declaredText(e)}, which is ${value}`

/**
 * The queries on which `expressions` depend, under fresh names, and the scope that contains them. A query is
 * over the coordinates that reach its node, so each node has its own queries: `namesByQuery` holds the names
 * of existing queries by key.
 */
export function translateQueries(
  queries: readonly Query[],
  expressions: readonly Expr[],
  scope: Scope,
  rename: (name: string) => string,
  namesByQuery: Map<string, string> = new Map(),
): { readonly queries: readonly Query[]; readonly scope: Scope } {
  const needed = new Set(expressions.flatMap((e) => [...freeVars(e)]))
  for (const q of [...queries].reverse())
    if (needed.has(q.name)) for (const e of operandsOf(q)) for (const v of freeVars(e)) needed.add(v)
  let inner = scope
  const out: Query[] = []
  for (const q of queries) {
    if (!needed.has(q.name)) continue
    const key = queryKey(translateQuery(q, '', inner))
    let name = namesByQuery.get(key)
    if (name === undefined) {
      name = rename(q.name)
      namesByQuery.set(key, name)
      out.push(translateQuery(q, name, inner))
    }
    inner = withVariables(inner, [[q.name, variable(name, declarationOf(q).dtype ?? 'index')]])
  }
  return { queries: out, scope: inner }
}

const translateQuery = (q: Query, name: string, scope: Scope): Query => ({
  ...mapQuery(
    q,
    (e) => translate(e, scope),
    (text) => scope.sources.get(text) ?? text,
  ),
  name,
})

/** Names of arrays that formats store next to axes; users choose names of lists and sets independently. */
export interface ArrayNames {
  /** The name by which users bind the array: the declared one, unless the data has an array of that name. */
  readonly bindingName: (name: string) => string
  /** The name in the kernel, unlike all names of the data but `holdsList`, the list that the array holds. */
  readonly kernelName: (name: string, holdsList?: string) => string
}

/** The names for one part; `data`: names of lists and sets. `rename`: as in `instantiate`. */
export function makeArrayNames(
  format: Format,
  label: string,
  data: ReadonlySet<string>,
  rename: (name: string, label: string) => string,
): ArrayNames {
  const reserved = new Set([...format.params.map((p) => p.name), ...format.order, ...tablesOf(format)])
  const isTaken = (name: string): boolean => reserved.has(name) || data.has(labelled(name, label))
  const bindingName = (name: string): string =>
    data.has(labelled(name, label)) ? `${name}_${unusedNumber(name, isTaken)}` : name
  const kernelName = (name: string, holdsList?: string): string => {
    let out = rename(name, label)
    for (let k = 2; data.has(out) && out !== holdsList; k++) out = rename(`${name}_${k}`, label)
    return out
  }
  return { bindingName, kernelName }
}
