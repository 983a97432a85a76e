/** Reasoning about integers: whatever is concluded holds for every value that the facts allow. */
import { test as law } from '@fast-check/vitest'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BOUND_RULES, isBelowBy } from '../../src/analysis/integers/bound-rules.ts'
import { Facts } from '../../src/analysis/integers/facts.ts'
import { linear, linearKey } from '../../src/analysis/integers/linear.ts'
import { rangeOfSum, rangesOver } from '../../src/analysis/integers/ranges.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import { add, ge, int, lt, mul, sub } from '../../src/ir/expr.ts'
import { runs } from '../support/cases.ts'
import { EXTENTS, integers, questions, values } from '../support/integer-gen.ts'

const RUNS = { numRuns: runs(1500) }

law.prop([integers, values], RUNS)('every value lies within the bounds', (e, at) => {
  const value = evaluate(e, at)
  const sum = linear(e)
  for (const { lo, hi, knownLo, knownHi } of [rangesOver(EXTENTS)(e), rangeOfSum(sum, rangesOver(EXTENTS))]) {
    if (knownLo) expect(value).toBeGreaterThanOrEqual(lo)
    if (knownHi) expect(value).toBeLessThanOrEqual(hi)
  }
})

law.prop([integers, values], RUNS)('a sum has the value of its terms', (e, at) => {
  const { terms, constant } = linear(e)
  const sum = [...terms.values()].reduce((n, t) => n + t.coefficient * evaluate(t.term, at), constant)
  expect(sum).toBe(evaluate(e, at) + 0)
})

law.prop([integers, integers, integers], RUNS)('equal sums have one key, however written', (a, b, c) => {
  const key = linearKey(linear(add(a, add(b, mul(c, int(3))))))
  expect(linearKey(linear(sub(add(add(c, b), add(c, c)), sub(b, add(a, b)))))).toBe(key)
})

law.prop([integers, values, fc.constantFrom(2, 3, 4, 8)], RUNS)(
  'what divides an expression divides its value',
  (e, at, by) => {
    const of = new Map([...at, ['n', at.get('n')! * by]])
    const facts = new Facts({ sizes: [{ size: 'n', relation: 'multiple', by }] })
    const value = evaluate(e, of)
    const divisor = facts.divisor(e)
    expect(divisor === 0 ? value + 0 : Math.abs(value % divisor)).toBe(0)
  },
)

law.prop([questions('x', 'z')], RUNS)('what is implied holds', ({ facts, of, end, at }) => {
  for (const cond of [lt(of, end), ge(of, int(0)), lt(of, int(20))])
    if (facts.implies(cond)) expect(evaluate(cond, at)).toBe(1)
})

test.each(BOUND_RULES)('less by rule: $name', (rule) => {
  let cases = 0
  fc.assert(
    fc.property(questions(rule.of, rule.below), ({ facts, of, end, at }) => {
      if (!isBelowBy(rule, of, end, facts)) return
      cases++
      expect(evaluate(of, at)).toBeLessThan(evaluate(end, at))
    }),
    { numRuns: runs(4000) },
  )
  expect(cases).toBeGreaterThan(0)
})
