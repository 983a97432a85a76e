/** Arguments of formats and compositions. */

import { failWith, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { appliedFormat } from '../../ast/print/message-text.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { constant, type Expr, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import type { FormatParam, OrderedFormat } from '../../ir/formats/format.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'

export interface SpanOption {
  readonly span?: Span | undefined
}

export interface Arguments {
  /** Integers and reals, by parameter: constants, or the variable of a measured size. */
  readonly values: ReadonlyMap<string, Expr>
  /** Lists and sets: parameter → name among the data. */
  readonly given: ReadonlyMap<string, { readonly name: string; readonly kind: 'list' | 'set' }>
  /** The sizes among these values that are to be measured, here or in the enclosing format. */
  readonly measured: readonly { readonly name: string; readonly span?: Span | undefined }[]
  /** `blocks(16)`. */
  readonly text: string
}

export const spanOf = (...spans: readonly (Span | undefined)[]): { span?: Span } => {
  const span = spans.find((s) => s !== undefined)
  return span ? { span } : {}
}

export const segments = (list: string): Expr => variable(segmentsOf(list))

/**
 * One argument for each parameter: a constant, a variable (the name of a list or set; a size measured in the
 * enclosing format), or the parameter's default. A measured parameter without an argument becomes the
 * variable `declareSize(name)`. A list or set parameter without an argument has its own name. @throws
 * SptError `format/arguments`, `format/argument-kind`
 */
export function bindArguments(
  format: OrderedFormat,
  args: readonly Expr[],
  declareSize: (name: string) => string,
  site: SpanOption = {},
): Arguments {
  checkArgumentCount(format, args, site)
  const values = new Map<string, Expr>()
  const given = new Map<string, { name: string; kind: 'list' | 'set' }>()
  const measured: { name: string; span?: Span | undefined }[] = []
  format.params.forEach((p, k) => {
    const arg = args[k]
    if (p.kind === 'list' || p.kind === 'set') {
      if (arg && arg.kind !== 'var')
        rejectKind(format, p, arg, `the name of a ${p.kind} among the data`, site)
      given.set(p.name, { name: arg?.kind === 'var' ? arg.name : p.name, kind: p.kind })
    } else if (arg) {
      const value = numericArgument(format, p, arg, site)
      values.set(p.name, value)
      if (value.kind === 'var') measured.push({ name: value.name, span: p.span })
    } else if (p.default !== null)
      values.set(p.name, numericArgument(format, p, substitute(p.default, values), site))
    else {
      const name = declareSize(p.name)
      measured.push({ name, span: p.span })
      values.set(p.name, variable(name))
    }
  })
  return { values, given, measured, text: textOf(format, args) }
}

function checkArgumentCount(format: OrderedFormat, args: readonly Expr[], site: SpanOption): void {
  const optional = (p: FormatParam): boolean => p.default !== null || p.measured || !isNumber(p)
  const minimum = format.params.findLastIndex((p) => !optional(p)) + 1
  if (args.length >= minimum && args.length <= format.params.length) return
  const range = minimum === format.params.length ? String(minimum) : `${minimum} to ${format.params.length}`
  failWith('format/arguments', `format ${format.name} has ${quantity(args.length, 'argument')}`, {
    ...spanOf(site.span, format.span),
    expected: `${range} argument${range === '1' ? '' : 's'}: ${signature(format)}`,
    // A composition written in place has no declaration: its text is its name.
    hint: /\W/.test(format.name)
      ? `names in conditions are the format's own, ${format.over.join(', ')}; others are numbers to give`
      : 'parameters with a default, measured ones (`w: size`), lists and sets may be left out, from the end',
  })
}

const isNumber = (p: FormatParam): boolean => p.kind === 'integer' || p.kind === 'real'

function numericArgument(format: OrderedFormat, p: FormatParam, e: Expr, site: SpanOption): Expr {
  if (p.kind === 'real') {
    if (e.kind === 'const' && Number.isFinite(e.value)) return constant(e.value, 'f64')
    return rejectKind(format, p, e, 'a finite number', site)
  }
  if (e.kind === 'const' && Number.isInteger(e.value) && Math.abs(e.value) < 2 ** 31) return constant(e.value)
  if (e.kind === 'var' && p.measured) return e
  return rejectKind(format, p, e, p.measured ? 'an integer, or a size' : 'an integer', site)
}

function rejectKind(
  format: OrderedFormat,
  p: FormatParam,
  arg: Expr,
  expected: string,
  site: SpanOption,
): never {
  return failWith('format/argument-kind', `${p.name} of format ${format.name} is given ${argText(arg)}`, {
    ...spanOf(arg.span, site.span, format.span),
    expected,
    hint: `the parameters are ${signature(format)}`,
  })
}

export const signature = (format: OrderedFormat): string =>
  format.params.length === 0
    ? `${format.name}, without parameters`
    : `${format.name}(${format.params.map((p) => (p.kind === 'integer' ? (p.measured ? `${p.name}: size` : p.name) : `${p.name}: ${p.kind}`)).join(', ')})`

/** A format with its arguments (numbers, names of lists and sets) as text. */
export const useText = (format: FormatSignature, args: readonly (number | string)[]): string =>
  textOf(
    format,
    args.map((a) =>
      typeof a === 'string' ? variable(a) : constant(a, Number.isInteger(a) ? 'index' : 'f64'),
    ),
  )

type FormatSignature = Pick<OrderedFormat, 'name' | 'params'>

const textOf = (format: FormatSignature, args: readonly Expr[]): string =>
  appliedFormat(format.name, format.params, args.map(argText))

const argText = (e: Expr): string => (e.kind === 'const' ? String(e.value) : e.kind === 'var' ? e.name : '…')
