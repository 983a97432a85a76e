/**
 * Format expressions after `as`: a format with arguments, or a composition in place, which has no name, such as
 * `blocks(16) where (density(16) >= 0.5) + rows`.
 */
import { SptError, withSources } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { mapSyntax } from '../../ast/nodes/walk.ts'
import { parseFormatParts } from '../../ast/parse/parse.ts'
import { printParts } from '../../ast/print/print.ts'
import type { AnyFormat, Composition, FormatParam } from '../../ir/formats/format.ts'
import { listAndSetDiagnostic } from '../../ir/formats/format-tables.ts'
import { queryWords } from '../../ir/formats/queries.ts'
import { collectErrors, errorCount, report, reportAll, throwErrors } from '../diagnostics.ts'
import { elaborateRules } from './compositions.ts'
import { elementNames, partsWrittenOut } from './dimension-lists.ts'
import { constantPlace, numberAt, numbersOf } from './format-names.ts'
import type { Numbers } from './format-place.ts'
import { type FindFormat, formatArguments, unknownFormat } from './format-uses.ts'
import { familyOf } from './formats.ts'

/** The name of a number: `n`, `p.width`. */
type NumberName = Ast.Name | Ast.Field
const textOf = (e: NumberName): string => (e.kind === 'name' ? e.name : `${e.object.name}.${e.field.name}`)

/** The part if it is the only one and has no condition; null otherwise. */
export function singleUse(parts: readonly Ast.AsPart[]): Ast.AsPart | null {
  const [only, more] = parts
  return only && !more && !only.where ? only : null
}

/**
 * The parts in place as a composition over the dimensions of the first format of fixed order, or for any order if there
 * is no such format. Its parameters are the numbers that the text names and `known` admits, by first mention. Lists and
 * sets have their names in the data.
 */
export function composeInPlace(
  parts: readonly Ast.AsPart[],
  known: (name: string) => boolean,
  find: FindFormat,
): { readonly format: AnyFormat; readonly args: readonly NumberName[] } | null {
  const [first] = parts
  // Unknown formats are reported where the parts are elaborated, or below if all are unknown.
  const { result: named } = collectErrors(() => parts.map((p) => find(p.format)))
  const fixed = named.find((f) => f && f.kind !== 'family')
  const leading = first && (fixed ?? find(first.format))
  if (!leading) return null
  const over = leading.kind === 'family' ? leading.over : leading.over.map((name) => ({ name, list: false }))
  const names = over.map((o) => o.name)
  const args = numbersIn(parts, names, find).filter((e) => known(textOf(e)))
  const list = over.find((o) => o.list)
  const span = first.span
  const name = printParts(parts)
  const write = (order: number): Composition | null => {
    const length = order - over.length + 1
    const before = errorCount()
    const written = partsWrittenOut(parts, list ? { name: list.name, length } : null)
    if (errorCount() > before) return null
    const dims = over.flatMap((o) => (o.list ? elementNames(o.name, length) : [o.name]))
    const made = composed(written, dims, args, find)
    return made && { kind: 'composition', name, over: dims, ...made, span }
  }
  const format = list ? familyOf({ name, over, span }, write) : write(over.length)
  return format && { format, args }
}

function composed(
  parts: readonly Ast.AsPart[],
  over: readonly string[],
  args: readonly NumberName[],
  find: FindFormat,
): Pick<Composition, 'params' | 'parts'> | null {
  const numbers: FormatParam[] = args.map((e) => {
    return { name: textOf(e), kind: 'integer', default: null, measured: false, span: e.span }
  })
  const given = new Map<string, 'list' | 'set'>()
  const rules = elaborateRules(
    parts.map((p) => ({ kind: 'part', name: null, use: p, where: p.where, span: p.span })),
    {
      what: 'the composition',
      over,
      values: numbersOf(numbers),
      given: {
        kinds: given,
        declare: (name, kind, span) => {
          const known = given.get(name)
          if (known !== undefined && known !== kind) reportAll({ ...listAndSetDiagnostic(name), span })
          else given.set(name, kind)
          return true
        },
      },
      find,
    },
  )
  const lists = [...given].map(([name, kind]): FormatParam => {
    return { name, kind, default: null, measured: false }
  })
  return rules && { params: [...numbers, ...lists], parts: rules }
}

/** The names that stand for numbers, each once, in the order of the text. */
function numbersIn(parts: readonly Ast.AsPart[], over: readonly string[], find: FindFormat): NumberName[] {
  const out = new Map<string, NumberName>()
  const bound = new Set([...queryWords((w) => w.takes === null), ...over])
  const visit = (part: readonly Ast.Expr[]): unknown =>
    mapSyntax<unknown>(part, (node) => {
      const e = node as Ast.Expr
      if (e.kind === 'name' || e.kind === 'field') {
        if (!out.has(textOf(e))) out.set(textOf(e), e)
        return e
      }
      if (e.kind === 'repeat') {
        bound.add(e.each.name.name)
        return visit([e.value])
      }
      // The first operand of these functions is the name of a list, a set or a dimension.
      return e.kind === 'call' && NAMED.has(e.fn.name)
        ? visit([...e.args.slice(1), ...(e.by ?? [])])
        : undefined
    })
  for (const p of parts) {
    const params = find(p.format)?.params ?? []
    p.args.forEach((e, k) => {
      const kind = params[k]?.kind
      if (kind !== 'list' && kind !== 'set') visit([e])
    })
    if (p.where) visit([p.where])
  }
  return [...out.values()].filter((e) => e.kind === 'field' || !bound.has(e.name))
}
const NAMED: ReadonlySet<string> = new Set([
  ...queryWords((w) => w.sourceKind !== undefined),
  'segments',
  'size',
  'order',
])

export interface FormatExpression {
  readonly format: AnyFormat
  /** Numbers, and names of lists and sets in the data. */
  readonly args: readonly (number | string)[]
}

/**
 * Parses the text after `as` in a schedule. In a composition in place, names of numbers are parameters, in the order of
 * the text, and `args` is empty.
 * @throws SptError `parse/…` and `check/…`, with spans in a source called `format`
 */
export function parseFormatExpression(
  text: string,
  formats: ReadonlyMap<string, AnyFormat>,
): FormatExpression {
  const source = { name: 'format', text }
  const find: FindFormat = (name) =>
    formats.get(name.name) ?? reportAll(unknownFormat(name, [...formats.keys()]))
  return withSources({ sources: new Map([[source.name, source]]) }, () => {
    const parts = parseFormatParts(source)
    const single = singleUse(parts)
    const made = throwErrors(() =>
      single ? constantUse(single, find) : composeInPlace(parts, () => true, find),
    )
    if (made) return single ? (made as FormatExpression) : { format: made.format, args: [] }
    throw new SptError(unknownFormat(parts[0]!.format, [...formats.keys()]))
  })
}

function constantUse(use: Ast.AsPart, find: FindFormat): FormatExpression | null {
  const format = find(use.format)
  if (!format) return null
  const none: Numbers = new Map()
  const number = (e: Ast.Expr, p: FormatParam): number | null => {
    const place = constantPlace(none, { kinds: new Map() }, 'an argument')
    const kind = p.kind === 'real' ? 'real' : 'integer'
    const x = numberAt(place, e, kind, `${p.name} of format ${format.name}`)
    if (!x) return null
    if (x.kind === 'const') return x.value
    return report('check/argument-type', e.span, {
      message: `${p.name} of format ${format.name} is a constant`,
      expected: 'a number',
    })
  }
  const args = formatArguments(use, format, number)
  return args && { format, args }
}
