/** Rewrite rules: both sides have one value, by an evaluator that shares nothing with the constructors. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { REMAINDERS, TRUNCATIONS } from '../../src/analysis/integers/division-rules.ts'
import { interval } from '../../src/analysis/integers/interval.ts'
import { FILL_RULES } from '../../src/analysis/sparsity/fill-folding.ts'
import { constant, type Expr, rewriter, type Var, variable } from '../../src/ir/expressions/expr.ts'
import { IDENTITIES } from '../../src/ir/expressions/identities.ts'
import { type Operator, orders, type Pattern, type Rule } from '../../src/ir/expressions/patterns.ts'
import { type ExprType, isFloat } from '../../src/ir/values/dtype.ts'
import { isTruth } from '../../src/ir/values/math.ts'
import { runs } from '../support/cases.ts'
import { plain } from '../support/plain-evaluator.ts'

const I32 = fc.oneof(fc.integer({ min: -9, max: 9 }), fc.integer(), fc.constantFrom(-(2 ** 31), 2 ** 31 - 1))
const VALUES = {
  f32: fc.oneof(fc.float(), fc.constantFrom(0, -0, 1, Number.NaN, Infinity, -Infinity)),
  i32: I32,
  u32: I32.map((x) => x >>> 0),
  index: fc.oneof(fc.integer({ min: -9, max: 99 }), I32),
  bool: fc.constantFrom(0, 1),
} as const
type Tested = keyof typeof VALUES
const INTEGERS = ['i32', 'u32', 'index'] as const
const isComparison = ({ match: [op] }: Rule): boolean => op === 'eq' || op === 'ne'
const LETTERS = ['x', 'y', 'c', 'd'] as const

interface Letter {
  readonly value: number
  readonly isConstant: boolean
}
type Letters = Readonly<Record<string, Letter>>
const letters = (type: Tested): fc.Arbitrary<Letters> => {
  const letter = (name: string) =>
    fc.record({ value: VALUES[type], isConstant: name < 'x' ? fc.constant(true) : fc.boolean() })
  return fc
    .tuple(...LETTERS.map(letter))
    .map((list) => Object.fromEntries(LETTERS.map((l, k) => [l, list[k]!])))
}

/** The types of an operator's operands, and of its result. */
function typesOf(op: Operator, t: Tested): readonly [of: (operand: number) => Tested, to: Tested] {
  if (op === 'and' || op === 'or' || op === 'not') return [() => 'bool', 'bool']
  if (op === 'select') return [(k) => (k === 0 ? 'bool' : t), t]
  return [() => t, op !== 'neg' && isTruth(op) ? 'bool' : t]
}

/** Returns the expression of a pattern as it is written, and adds the values of its variables. */
function written(p: Pattern, t: Tested, of: Letters, at: Map<string, number>): Expr {
  if (typeof p === 'number') return constant(p, t)
  if (typeof p === 'string') {
    const { value, isConstant } = of[p]!
    const own = t === 'bool' ? value & 1 : value
    if (isConstant) return constant(own, t)
    at.set(p, own)
    return variable(p, t)
  }
  const [op, ...operands] = p
  const [type, dtype] = typesOf(op, t)
  const [x, y, z] = operands.map((o, k) => written(o, type(k), of, at))
  if (op === 'select') return { kind: op, cond: x!, then: y!, else: z!, dtype }
  if (op === 'neg' || op === 'not') return { kind: 'unary', op, x: x!, dtype }
  return { kind: 'binary', op, a: x!, b: y!, dtype }
}

interface Tested1<C> {
  readonly rule: Rule<C>
  readonly match: Pattern
  readonly name: string
  readonly types: readonly Tested[]
  readonly context: (values: { readonly x: number; readonly y: number }) => C
  /** The values for which the rule is stated. */
  readonly where: (e: Expr, values: { readonly x: number; readonly y: number }) => boolean
}
const table = <C>(name: string, rules: readonly Rule<C>[], of: Omit<Tested1<C>, 'rule' | 'match' | 'name'>) =>
  rules.flatMap((rule) =>
    orders(rule).map((match, k) => {
      const own = k === 0 ? rule.name : `${rule.name}, swapped`
      return { ...of, rule, match, name: `${name}: ${own}` } as unknown as Tested1<unknown>
    }),
  )

const TABLES = [
  ...IDENTITIES.flatMap((rule) =>
    table('identity', [rule], {
      types: isComparison(rule) ? [...INTEGERS, 'bool'] : INTEGERS,
      context: () => undefined,
      where: () => true,
    }),
  ),
  ...table('fill', FILL_RULES, {
    types: ['f32'],
    context: () => undefined,
    // The finiteness of factors is checked on the data.
    where: (e, { x }) => e.kind !== 'binary' || e.op !== 'mul' || Number.isFinite(x),
  }),
  ...table('division', TRUNCATIONS, {
    types: INTEGERS,
    context: (of) => (e) => {
      const value = e.kind === 'const' ? e.value : of[(e as Var).name as 'x' | 'y']
      return interval(value, value)
    },
    where: (_, { y }) => y !== 0,
  }),
  ...table('remainder', REMAINDERS, {
    types: ['index'],
    context: (of) => (e) => (e.kind === 'var' ? Math.abs(of[e.name as 'x' | 'y']) : 1),
    // The rules are for sums that do not wrap.
    where: (e, { x }) =>
      e.kind === 'binary' &&
      e.a.kind === 'binary' &&
      [x, plain(e.a.b, new Map())].every((v) => Math.abs(v) < 2 ** 29),
  }),
]

const same = (t: ExprType, a: number, b: number): boolean =>
  // The sign of a structural zero has no effect.
  isFloat(t) ? Object.is(a + 0, b + 0) : a === b

test.each(TABLES)('$name', ({ rule, match, types, context, where }) => {
  const rewrite = rewriter([rule])
  let cases = 0
  for (const type of types)
    fc.assert(
      fc.property(letters(type), (of) => {
        const at = new Map<string, number>()
        const e = written(match, type, of, at)
        const values = { x: of.x!.value, y: of.y!.value }
        if (!where(e, values)) return
        const to = rewrite(e, context(values))
        if (!to) return
        cases++
        const [want, got] = [plain(e, at), plain(to, at)]
        if (!same(e.dtype, want, got)) expect.fail(`${got}, not ${want}`)
      }),
      { numRuns: runs(300) },
    )
  expect(cases).toBeGreaterThan(0)
})

test('no two rules have one name', () => {
  const names = TABLES.map((t) => t.name)
  expect(names.toSorted()).toEqual([...new Set(names)].toSorted())
})
