/** Formats by name, with arguments, in compositions and schedules. */
import type { Diagnostic, Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Scope as FileScope } from '../../ast/imports/linked-program.ts'
import { packagedFormatHint } from '../../ast/imports/resolve-path.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { type Expr, type Var, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { AnyFormat, FormatParam, OrderedFormat } from '../../ir/formats/format.ts'
import { formatOfOrder } from '../../ir/formats/format.ts'
import type { Query, UnnamedQuery } from '../../ir/formats/queries.ts'
import { declarationOf, operandsOf, queryKey } from '../../ir/formats/queries.ts'
import { errorCount, orReport, report, reportAll } from '../diagnostics.ts'

/** The elaborated format of a name; null after a reported error. */
export type FindFormat = (name: Ast.Ident) => AnyFormat | null

export const formatNamed = (name: Ast.Ident, scope: FileScope): Ast.Format | null =>
  declarationIn(scope.formats, name, scope, () => unknownFormat(name, [...scope.formats.keys()]))

/** The declaration of a name. Returns null, and reports an error, if several imported files or no file declares it. */
export function declarationIn<D>(
  decls: ReadonlyMap<string, D>,
  id: Ast.Ident,
  { ambiguous }: Pick<FileScope, 'ambiguous'>,
  unknown: () => Diagnostic,
): D | null {
  const several = ambiguous.get(id.name)
  return decls.get(id.name) ?? reportAll(several ? ambiguity(id, several) : unknown())
}

export function unknownFormat({ name, span }: Ast.Ident, candidates: readonly string[]) {
  // SciPy's classes: csr_matrix, coo_array.
  const meant = name.replace(/_(matrix|array)$/, '')
  return {
    code: 'check/unknown-format',
    message: `there is no format ${name}`,
    span,
    lookup: { name, candidates },
    hint: candidates.includes(meant) ? `write \`${meant}\`` : packagedFormatHint(meant),
  }
}

const ambiguity = (name: Ast.Ident, decls: readonly Ast.Decl[]) => ({
  code: 'check/ambiguous',
  message: `${name.name} is declared by ${decls.length} of the files imported here`,
  span: name.span,
  labels: decls.map((d) => ({ span: d.name.span, text: 'declared here' })),
  hint: 'import and rename a declaration: import { name as other } from "…"',
})

export const forOrder = (format: AnyFormat, order: number): OrderedFormat | null =>
  orReport(() => formatOfOrder(format, order))

/** A parameter of a declaration that takes arguments by position. */
interface Taken {
  readonly name: string | { readonly name: string }
  readonly default: unknown
  readonly measured?: boolean
  readonly kind?: FormatParam['kind'] | Ast.ParamKind
}

const optional = (p: Taken): boolean =>
  p.default !== null || p.measured === true || p.kind === 'list' || p.kind === 'set'

/**
 * True if the number of arguments is valid: up to the last parameter without a default at least, and the number of
 * parameters at most.
 */
export function checkArguments(what: string, given: number, params: readonly Taken[], span: Span): boolean {
  const least = params.findLastIndex((p) => !optional(p)) + 1
  if (given >= least && given <= params.length) return true
  const number = least === params.length ? `${least}` : `${least} to ${params.length}`
  report('check/arguments', span, {
    message: `${what} is given ${quantity(given, 'argument')}`,
    expected: params.length > 0 ? `${number}: (${params.map(nameOf).join(', ')})` : '0',
  })
  return false
}

const nameOf = ({ name }: Pick<Taken, 'name'>): string => (typeof name === 'string' ? name : name.name)

/** The arguments of a schedule in the order of its parameters; undefined for a parameter without one. */
export const inOrder = <V>(
  args: readonly Ast.NamedArg<V>[],
  params: readonly Pick<Taken, 'name'>[],
): readonly (Ast.NamedArg<V> | undefined)[] =>
  params.map((p, k) => (args[k]?.name === null ? args[k] : args.find((a) => a.name?.name === nameOf(p))))

/** True if arguments by place or name are valid. @param passed parameters that need no argument */
export function checkNamed<V extends Ast.Node>(
  what: string,
  { args, span }: { readonly args: readonly Ast.NamedArg<V>[]; readonly span: Span },
  params: readonly Taken[],
  passed: readonly string[] = [],
): boolean {
  const names = params.map(nameOf)
  const placed = args.filter((a) => a.name === null)
  if (placed.length > params.length) return checkArguments(what, args.length, params, span)
  const before = errorCount()
  const given = names.map((_, k): Ast.NamedArg<V> | undefined => placed[k])
  for (const a of args) {
    if (!a.name) continue
    const { name, span } = a.name
    const k = names.indexOf(name)
    if (k < 0)
      report('check/unknown-parameter', span, {
        message: `${what} has no parameter ${name}`,
        lookup: { name, candidates: names },
      })
    else if (given[k])
      report('check/duplicate', span, {
        message: `${name} is given twice`,
        labels: [{ span: given[k].value.span, text: 'the first value' }],
        hint: `remove a value of ${name}`,
      })
    else given[k] = a
  }
  const isComplete = errorCount() === before
  params.forEach((p, k) => {
    if (isComplete && !given[k] && !passed.includes(names[k]!) && p.default === null)
      report('check/arguments', span, {
        message: `${what} needs a value for ${names[k]}`,
        expected: `(${names.join(', ')})`,
      })
  })
  return errorCount() === before
}

/** The arguments of a format: names of lists and sets, and the results of `number` for other arguments. */
export function formatArguments<T>(
  { args, span }: Pick<Ast.FormatUse, 'args' | 'span'>,
  format: AnyFormat,
  number: (e: Ast.Expr, p: FormatParam) => T | null,
): readonly (T | string)[] | null {
  if (!checkArguments(`format ${format.name}`, args.length, format.params, span)) return null
  const out = args.map((e, k): T | string | null => {
    const p = format.params[k]!
    return p.kind === 'list' || p.kind === 'set' ? givenArgument(e, p, format) : number(e, p)
  })
  return out.every((a) => a !== null) ? out : null
}

export function givenArgument(e: Ast.Expr, p: FormatParam, format: AnyFormat): string | null {
  if (e.kind === 'name') return e.name
  return report('check/argument-type', e.span, {
    message: `${p.name} of format ${format.name} is a ${p.kind}, which is passed by name`,
    expected: `the name of the ${p.kind} in the bound data`,
  })
}

// Queries of formats and compositions: `count(j by i)` in an expression becomes an entry of a list and a
// variable with its name. The names are unique in the declaration; code that combines several lists renames
// them.

/** The queries of one scope, each once and after the queries that it uses. */
export class Queries {
  readonly list: Query[] = []
  readonly #byKey = new Map<string, Query>()

  constructor(private readonly taken: ReadonlySet<string>) {}

  add(question: UnnamedQuery, span: Span): Var {
    const key = queryKey(question)
    let query = this.#byKey.get(key)
    if (!query) {
      query = { ...question, name: this.#fresh(question.kind), span }
      this.#byKey.set(key, query)
      this.list.push(query)
    }
    return variable(query.name, declarationOf(query).dtype ?? 'index', span)
  }

  #fresh(kind: string): string {
    const used = (name: string): boolean => this.taken.has(name) || this.list.some((q) => q.name === name)
    let k = 1
    while (used(`${kind}_${k}`)) k++
    return `${kind}_${k}`
  }
}

/** The queries that an expression uses, directly or through other queries. */
export function queriesOf(e: Expr, queries: readonly Query[]): ReadonlySet<Query> {
  const out = new Set<Query>()
  const visit = (x: Expr): void => {
    for (const q of queries)
      if (!out.has(q) && freeVars(x).has(q.name)) {
        out.add(q)
        for (const operand of operandsOf(q)) visit(operand)
      }
  }
  visit(e)
  return out
}
