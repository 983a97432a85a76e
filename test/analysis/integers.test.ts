/** Reasoning about integers: whatever is concluded holds for every value that the facts allow. */
import { test as law } from '@fast-check/vitest'
import { expect } from 'vitest'
import { linear, linearKey } from '../../src/analysis/integers/linear.ts'
import { rangeOfSum, rangesOver } from '../../src/analysis/integers/ranges.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import { add, int, mul, sub } from '../../src/ir/expr.ts'
import { runs } from '../support/cases.ts'
import { EXTENTS, integers, values } from '../support/integer-gen.ts'

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
