/** The fill ratio of a tensor in a format, as a statistic for conditions: `fill_ratio(W, tiles(g, 64))`. */

import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { appliedFormat } from '../../ast/print/applied-name.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { constant, type Expr } from '../../ir/expressions/expr.ts'
import type { FormatParam, OrderedFormat } from '../../ir/formats/format.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Report } from '../diagnostics.ts'
import { composeInPlace, singleUse } from '../formats/format-expressions.ts'
import { type FindFormat, formatArguments, forOrder } from '../formats/format-uses.ts'
import { argumentOver, parameters } from '../schedules/schedule-params.ts'

/**
 * A fill ratio: the number of slots for values that the format has for the tensor, padding included, divided by the
 * number of elements of the tensor (f64).
 */
export interface Coverage {
  readonly kind: 'fill_ratio'
  readonly tensor: string
  readonly format: OrderedFormat
  /** The format's name in the text. */
  readonly called: string
  /** The arguments of the format: numbers over the parameters of the choice, or names of lists and sets. */
  readonly args: readonly (Expr | string)[]
  /** True if schedules of the choice build the format at run time: the ratio is unknown before the first run. */
  readonly live?: boolean
  /** The span of the tensor's name. */
  readonly named: Span
  readonly span: Span
}

/** Returns the text of the statistic, which is its name in values and messages. */
export const coverageText = ({ tensor, format, called, args }: Coverage): string =>
  `fill_ratio(${tensor}, ${appliedFormat(
    called,
    format.params,
    args.map((a) => (typeof a === 'string' ? a : a.kind === 'const' ? String(a.value) : printExpr1(a))),
  )})`

/** Returns the statistic with numbers in place of expressions. */
export const withNumbers = (c: Coverage, value: (e: Expr) => number): Coverage => ({
  ...c,
  args: c.args.map((a) =>
    typeof a === 'string' || a.kind === 'const' ? a : constant(value(a), a.dtype, a.span),
  ),
})

/** The names that arguments of formats may use in a condition. */
export interface ArgumentNames {
  readonly names: readonly string[]
  /** A description of the names, for messages. */
  readonly what: string
}

/** Returns the statistic of a call of `fill_ratio`; null after a reported error. */
export function coverageOf(
  e: Ast.Call,
  kernel: Kernel1,
  over: ArgumentNames,
  find: FindFormat,
  report: Report,
): Coverage | null {
  const [of] = e.args
  const { parts } = e
  if (!parts || of?.kind !== 'name')
    return report.error({
      code: 'check/statistic',
      message: 'covered takes a tensor and a format',
      span: e.span,
      expected:
        'the names of both with the arguments of the format, or several formats: fill_ratio(W, FORMAT(16) where (…) + FORMAT)',
    })
  const order = orderOf(of, kernel, report)
  const single = singleUse(parts)
  const made = single ? null : composeInPlace(parts, (name) => over.names.includes(name), find, report)
  const named = single ? find(single.format) : made?.format
  const format = named && order !== null && forOrder(named, order, report)
  if (!format) return null
  if (format.over.length !== order)
    return report.error({
      code: 'check/format-over',
      message: `format ${format.name} is over (${format.over.join(', ')}), and ${of.name} has ${order} ${order === 1 ? 'dimension' : 'dimensions'}`,
      span: parts[0]!.format.span,
      expected: 'a format over as many dimensions',
    })
  const names = parameters(new Set(over.names), over.what, [], report)
  const number = (x: Ast.Expr, kind?: FormatParam['kind']): Expr | null =>
    argumentOver(names, x, kind === 'real' ? 'real' : 'integer', report)
  const args = single
    ? formatArguments(single, format, (x, p) => number(x, p.kind), report)
    : made!.args.map((x) => number(x))
  if (!args?.every((a) => a !== null)) return null
  const called = single?.format.name ?? format.name
  return { kind: 'fill_ratio', tensor: of.name, format, called, args, named: of.span, span: e.span }
}

/** Returns the number of dimensions of a tensor; null after a reported error. */
function orderOf({ name, span }: Ast.Name, { name: own, buffers }: Kernel1, report: Report): number | null {
  const buffer = buffers.find((b) => b.name === name)
  if (buffer) return buffer.axes.length
  return report.error({
    code: 'check/unknown-buffer',
    message: `kernel ${own} has no buffer ${name}`,
    span,
    lookup: { name, candidates: buffers.map((b) => b.name) },
  })
}
