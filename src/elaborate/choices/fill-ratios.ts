/** Fill ratios in conditions of choices. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { appliedFormat } from '../../ast/print/message-text.ts'
import { constant, type Expr } from '../../ir/expressions/expr.ts'
import type { OrderedFormat } from '../../ir/formats/format.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'

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

/** The text of the statistic, which is its name in values and messages. */
export const coverageText = (c: Coverage): string => `fill_ratio(${c.tensor}, ${formatText(c)})`

/** The format with its arguments. */
export const formatText = ({ format, called, args }: Coverage): string =>
  appliedFormat(
    called,
    format.params,
    args.map((a) => (typeof a === 'string' ? a : a.kind === 'const' ? String(a.value) : printExpr1(a))),
  )

export const withNumbers = (c: Coverage, value: (e: Expr) => number): Coverage => ({
  ...c,
  args: c.args.map((a) =>
    typeof a === 'string' || a.kind === 'const' ? a : constant(value(a), a.dtype, a.span),
  ),
})
