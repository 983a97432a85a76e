/** Arguments of steps in a point of a space: the decided numbers, as literals of a text. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { Use } from './space-leaves.ts'
import { type Known, partialValue } from './space-values.ts'

/** Returns the arguments with numbers as literals. @throws SptError `space/argument` if one is not an integer */
export const argumentsOf = ({ step, args }: Use, known: Known): readonly Ast.UseArgument[] =>
  step.args.map((written, k) => (args[k] ? argumentOf(args[k], step, known) : written))

function argumentOf(e: Expr, { schedule, span }: Ast.UseStep, known: Known): Ast.Expr {
  const value = partialValue(e, known)
  if (value !== undefined && Number.isSafeInteger(value)) return literal(value, span)
  return fail({
    code: 'space/argument',
    message: `an argument of schedule ${schedule.name} would be ${value}`,
    span: e.span ?? span,
    expected: 'an integer',
  })
}

export const literal = (value: number, span: Ast.Node['span']): Ast.Expr => {
  const number: Ast.Expr = { kind: 'number', value: Math.abs(value), float: false, span }
  return value < 0 ? { kind: 'unary', op: 'neg', x: number, span } : number
}
