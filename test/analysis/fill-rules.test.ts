/** Rules about fill values: both sides have one value, in wrapping i32, index and float arithmetic. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FILL_RULES } from '../../src/analysis/sparsity/fill-folding.ts'
import { binary, constant, type Expr, variable } from '../../src/ir/expressions/expr.ts'
import { firstRule, type Pattern } from '../../src/ir/expressions/patterns.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs } from '../support/cases.ts'

const VALUES = {
  f32: fc.oneof(fc.float(), fc.constantFrom(0, -0, Number.NaN, Infinity, -Infinity)),
  i32: fc.oneof(fc.integer(), fc.constantFrom(0, -(2 ** 31), 2 ** 31 - 1)),
  index: fc.nat(),
}
const TYPES = ['f32', 'i32', 'index'] as const

test.each(FILL_RULES)('$name', (rule) => {
  let cases = 0
  const apply = firstRule([rule])
  for (const dtype of TYPES)
    fc.assert(
      fc.property(VALUES[dtype], fc.boolean(), (x, isConstant) => {
        const letter = isConstant ? constant(x, dtype) : variable('x', dtype)
        const made = (p: Pattern): Expr =>
          typeof p === 'object'
            ? binary(p[0], made(p[1]), made(p[2]))
            : typeof p === 'number'
              ? constant(p, dtype)
              : letter
        // Constants are folded before a rule sees them, and so are neutral elements of integers.
        const e = made(rule.match)
        const folded = apply(e)
        if (!folded || (folded.finite && !Number.isFinite(x))) return
        cases++
        // The sign of a structural zero has no effect.
        const of = (y: Expr): number => evaluate(y, new Map([['x', x]])) + 0
        expect(of(folded.value)).toBe(of(e))
      }),
      { numRuns: runs(60) },
    )
  expect(cases).toBeGreaterThan(0)
})
