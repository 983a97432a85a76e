/** Sizes of a plan: evaluation of expressions, inference from the lengths of arrays, and checks before a run. */
import { brokenCheck, brokenFact, type Sizes, valueIn } from '../plan/interpret.ts'
import type { Expression, Plan } from '../plan/schema.ts'
import { failWith } from './plan-error.ts'

export const failMissing = (kind: 'size' | 'scalar', name: string): never =>
  failWith(`bind/missing-${kind}`, `missing ${kind} ${name}`, `a number ${name}`)

/** The value of an expression. @throws PlanError `bind/missing-size` of a name without value */
export const evaluate = (e: Expression, sizes: Sizes): number =>
  valueIn(e, sizes) ?? failMissing('size', JSON.stringify(e))

/** Adds the size that makes `e` equal to `value`, if a sum or product determines it. */
export function solve(e: Expression, value: number, sizes: Map<string, number>): void {
  if (typeof e === 'string' && !sizes.has(e) && value >= 0 && Number.isInteger(value)) sizes.set(e, value)
  if (typeof e !== 'object') return
  const [op, a, b] = e as readonly [string, Expression, Expression]
  const inverse =
    op === 'add'
      ? (x: number, y: number) => x - y
      : op === 'mul'
        ? (x: number, y: number) => x / y
        : undefined
  if (!inverse) return
  for (const [x, y] of [
    [a, b],
    [b, a],
  ] as const) {
    const other = valueIn(y, sizes)
    if (other !== undefined && valueIn(x, sizes) === undefined) solve(x, inverse(value, other), sizes)
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
