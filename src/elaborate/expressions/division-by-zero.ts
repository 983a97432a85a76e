/** Divisions by 0 in expressions that users write about their data: conditions of choices, values and conditions of spaces. */
import { failWith, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { exprPrinter, plainConstant } from '../../ir/print/print-expr.ts'
import { exactOperationOr } from '../../ir/values/evaluate.ts'

const text = exprPrinter(plainConstant)

/** Operations of exact arithmetic, which never wrap around. @throws SptError `code` if one divides by 0 */
export const withoutDivisionByZero = (code: 'choose/division' | 'space/division', span?: Span) =>
  exactOperationOr((divisor) =>
    failWith(code, 'this divides by 0 for the bound data', {
      ...(span && { span }),
      hint: `test the divisor first: \`${text(divisor)} != 0 and …\``,
    }),
  )
