/** Integer division: `ceildiv(a, b)`, the least integer that is not less than a / b, and divisions by 0. */
import { isNonNegative, NATURAL } from '../../analysis/integers/interval.ts'
import { rangesBy } from '../../analysis/integers/ranges.ts'
import { failWith, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { binary, cast, ceildiv, constant, type Expr } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { exprPrinter, plainConstant } from '../../ir/print/print-expr.ts'
import { isInt, join } from '../../ir/values/dtype.ts'
import { exactOperationOr } from '../../ir/values/evaluate.ts'
import { report } from '../diagnostics.ts'
import { joinOperands, type Operand, plain, type Typed } from './type-conversion.ts'

/**
 * True if a name is a size. Sums of sizes fit in 32 bits, because extents and coordinates with larger sums are
 * rejected.
 */
export type Sizes = (name: string) => boolean

export function divideUp(dividend: Operand, divisor: Operand, whole: Span, sizes: Sizes): Typed | null {
  const both = joinOperands(dividend, divisor)
  if (!both) return null
  const [a, b] = both
  if (!isInt(join(a.dtype, b.dtype)))
    return report('check/operand', whole, {
      message: 'ceildiv takes integers',
      hint: 'use ceil(a / b)',
    })
  if (b.kind === 'const' && b.value === 0) return divisionByZero(divisor.span)
  const known = a.kind === 'const' && b.kind === 'const'
  const ofSizes = !known && isSize(a, sizes) && isSize(b, sizes) && isNatural(b)
  return plain(ofSizes ? ceildiv(a, b) : roundedUp(a, b, whole))
}

/** The quotient rounded down, plus 1 if there is a remainder. A sum of `a` and `b` could overflow their type. */
function roundedUp(a: Expr, b: Expr, span: Span): Expr {
  if (b.kind === 'const' && b.value === 1) return a
  const rest = binary('ne', binary('mod', a, b, span), constant(0, b.dtype), span)
  return binary('add', binary('div', a, b, span), cast(rest, a.dtype, span), span)
}

const isSize = (e: Expr, sizes: Sizes): boolean =>
  e.dtype === 'index' && !someExpr(e, (x) => x.kind === 'load' || (x.kind === 'var' && !sizes(x.name)))

/** True if an expression over sizes is never negative, given that sizes are not negative. */
const isNatural = (e: Expr): boolean =>
  isNonNegative(rangesBy((x) => (x.kind === 'var' ? { range: NATURAL } : undefined))(e))

export const divisionByZero = (span: Span): null =>
  report('check/division-by-zero', span, {
    message: 'an integer is divided by 0',
    expected: 'a divisor other than 0',
  })

// Divisions by 0 in expressions that users write about their data: conditions of choices, values and
// conditions of spaces.

const text = exprPrinter(plainConstant)

/** Operations of exact arithmetic, which never wrap around. @throws SptError `code` if one divides by 0 */
export const withoutDivisionByZero = (code: 'choose/division' | 'space/division', span?: Span) =>
  exactOperationOr((divisor) =>
    failWith(code, 'this divides by 0 for the bound data', {
      ...(span && { span }),
      hint: `test the divisor first: \`${text(divisor)} != 0 and …\``,
    }),
  )
