/** Simultaneous substitution: what an expression folds to is not replaced a second time. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import { add, div, int, max, min, mul, select, sub, variable } from '../../src/ir/expressions/expr.ts'
import { substitute } from '../../src/ir/expressions/expr-tree.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs } from '../support/cases.ts'

const NAMES = ['i', 'j', 'k'] as const
const leaf: fc.Arbitrary<Expr> = fc.oneof(
  fc.constantFrom(...NAMES).map((n) => variable(n)),
  fc.constantFrom(0, 1).map(int),
)
const { expr } = fc.letrec<{ expr: Expr }>((tie) => ({
  expr: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.tuple(fc.constantFrom(add, sub, mul, min, max), tie('expr'), tie('expr')).map(([f, a, b]) => f(a, b)),
    tie('expr').map((a) => div(a, int(1))),
    fc.tuple(tie('expr'), tie('expr')).map(([a, b]) => select(sub(a, b), a, b)),
  ),
}))

test('a sum that folds to another variable', () => {
  const map = new Map<string, Expr>([
    ['i', variable('j')],
    ['j', int(5)],
    ['k', int(0)],
  ])
  expect(substitute(add(variable('i'), variable('k')), map)).toEqual(variable('j'))
})

test('substitution commutes with evaluation', () => {
  fc.assert(
    fc.property(expr, fc.tuple(leaf, leaf, leaf), fc.tuple(fc.nat(9), fc.nat(9), fc.nat(9)), (e, by, at) => {
      const values = new Map<string, number>(NAMES.map((n, k) => [n, at[k]!]))
      const replaced = substitute(e, new Map(NAMES.map((n, k) => [n, by[k]!])))
      const inner = new Map<string, number>(NAMES.map((n, k) => [n, evaluate(by[k]!, values)]))
      // Both zeros are equal.
      expect(evaluate(replaced, values) + 0).toBe(evaluate(e, inner) + 0)
    }),
    { numRuns: runs(400) },
  )
})
