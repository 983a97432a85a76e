/** Specialisation on sizes: assumptions that a schedule may rely on, and that runs check (`require`). */

import { factsInside } from '../../../analysis/integers/facts.ts'
import { simplifyUnder } from '../../../analysis/integers/simplify-under.ts'
import { expectArgument, expectOptions } from '../../../ast/diagnostics/expect-argument.ts'
import { type Expr, int } from '../../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import type { Fact } from '../../../ir/statements/loops.ts'
import { type Body, rewriteStmts } from '../../../ir/statements/tree.ts'
import { primitive } from '../../primitive.ts'
import { among } from '../../refusals.ts'
import * as arg from '../../steps/arguments.ts'

type Requirement = { readonly multiple: number } | { readonly equal: number }

/**
 * `require d % 4 == 0`, `require d == 128`: the schedule is for such sizes. Later steps and lowering rely on it: splits
 * by a divisor have no remainder, neighbouring elements are aligned, an equal size is a constant. A run with other
 * sizes is rejected (`run/requirement`) before any launch. If steps on coordinates follow, the step is applied again
 * after them.
 */
export const require = primitive({
  word: 'require',
  call: "require('d', { multiple: 4 })",
  ofSizes: true,
  takes: arg.forms(
    [arg.size('size'), arg.word('%', 'multiple')('relation'), arg.operand('by'), '==', '0'],
    [arg.size('size'), arg.word('==', 'equal')('relation'), arg.integer('by')],
  ),
  given: (size: string, what: Requirement) => ({ size, ...relationOf(what) }),
  apply(cx, step) {
    const sizes = cx.kernel.params.filter((p) => p.kind === 'size').map((p) => p.name)
    if (!sizes.includes(step.size))
      cx.refuse('schedule/unknown-size', [], {
        message: `${cx.kernel.name} has no size ${step.size}`,
        ...among(step.size, sizes),
      })
    if (!Number.isInteger(step.by) || step.by < (step.relation === 'equal' ? 0 : 1) || step.by >= 2 ** 31)
      cx.refuse('schedule/bad-requirement', [], {
        message: `${step.size} cannot be required to be ${step.relation === 'equal' ? '' : 'a multiple of '}${step.by}`,
        expected: step.relation === 'equal' ? 'an integer from 0 on' : 'an integer from 1 on',
      })
    const { size, relation, by, span } = step
    const fact: Fact = { size, relation, by, ...(span && { span }) }
    const body = relation === 'equal' ? fixed(cx.kernel.body, size, by) : cx.kernel.body
    const facts = factsInside([], { ...cx.kernel, facts: [...(cx.kernel.facts ?? []), fact] })
    // Later steps may name a loop that never runs.
    return { body: simplifyUnder(body, facts, true), facts: [fact] }
  },
})

function fixed(body: Body, size: string, value: number): Body {
  const replace = (e: Expr): Expr | undefined =>
    e.kind === 'var' && e.name === size ? int(value) : undefined
  return rewriteStmts(body, { expr: (e) => rewriteExpr(e, replace) })
}

function relationOf(what: Requirement) {
  expectOptions('require', what as { multiple?: number; equal?: number }, ['multiple', 'equal'])
  const [, second] = Object.keys(what)
  expectArgument(
    Object.keys(what).length === 1,
    'what is required',
    second ?? what,
    '{ multiple } or { equal }',
  )
  return 'equal' in what
    ? ({ relation: 'equal', by: what.equal } as const)
    : ({ relation: 'multiple', by: what.multiple } as const)
}
