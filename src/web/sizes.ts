/** Sizes of a plan: evaluation of expressions, inference from the lengths of arrays, and checks before a run. */
import { brokenCheck, brokenFact, type Sizes, valueIn } from '../plan/interpret.ts'
import type { Expression, Plan } from '../plan/schema.ts'
import { failWith } from './plan-error.ts'

/** Adds the size that makes `e` equal to `value`, if a sum or product determines it. */
export function solve(e: Expression, value: number, sizes: Map<string, number>): void {
  if (typeof e === 'string' && !sizes.has(e) && value >= 0 && Number.isInteger(value)) sizes.set(e, value)
  if (typeof e !== 'object') return
  const [op, a, b] = e as readonly [string, Expression, Expression]
  for (const [x, y] of [
    [a, b],
    [b, a],
  ] as const) {
    // NaN, also of an unknown operand, determines no size.
    const other = valueIn(y, sizes) ?? NaN
    const rest = op === 'add' ? value - other : op === 'mul' ? value / other : NaN
    if (valueIn(x, sizes) === undefined) solve(x, rest, sizes)
  }
}

/** Checks required multiples and the ranges of index expressions. @throws PlanError `run/requirement`, `plan/overflow` */
export function checkSizes({ kernel, facts, checks }: Plan, sizes: Sizes): void {
  const fact = brokenFact(facts, sizes)
  if (fact) {
    const text = `${fact.size} ${fact.relation === 'multiple' ? `% ${fact.by} == 0` : `== ${fact.by}`}`
    failWith('run/requirement', `the schedule of ${kernel} requires ${text}`, text)
  }
  const over = brokenCheck(checks, sizes, (x) => x !== ~~x)
  if (over) {
    const { what, launch, text } = over.check
    failWith('plan/overflow', `${what} in ${launch} does not fit 32 bits: ${text} reaches ${over.value}`)
  }
}
