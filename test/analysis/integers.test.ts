/** Reasoning about integers: whatever is concluded holds for every value that the facts allow. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { END_RULES } from '../../src/analysis/integers/bound-rules.ts'
import { Facts } from '../../src/analysis/integers/facts.ts'
import { binaryInterval, interval, LOWEST, narrowed } from '../../src/analysis/integers/interval.ts'
import { linear, linearKey } from '../../src/analysis/integers/linear.ts'
import { type Digit, mixedRadix } from '../../src/analysis/integers/mixed-radix.ts'
import { neverNegative, RELAXATIONS } from '../../src/analysis/integers/non-negative.ts'
import { rangeOfSum, rangesOver } from '../../src/analysis/integers/ranges.ts'
import { CONDITION_RULES } from '../../src/analysis/integers/simplify-under.ts'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import {
  add,
  binary,
  bool,
  ceildiv,
  constant,
  ge,
  int,
  lt,
  max,
  mul,
  rewriter,
  sub,
  variable,
} from '../../src/ir/expressions/expr.ts'
import { freeVars } from '../../src/ir/expressions/expr-tree.ts'
import { matcher } from '../../src/ir/expressions/patterns.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs } from '../support/cases.ts'
import { EXTENTS, integers, questions, quotients, values } from '../support/integer-gen.ts'
import { property } from '../support/property.ts'

const RUNS = { numRuns: runs(1500) }

property([integers, values], RUNS)('every value lies within the bounds', (e, at) => {
  const value = evaluate(e, at)
  const sum = linear(e)
  for (const { lo, hi, knownLo, knownHi } of [rangesOver(EXTENTS)(e), rangeOfSum(sum, rangesOver(EXTENTS))]) {
    if (knownLo) expect(value).toBeGreaterThanOrEqual(lo)
    if (knownHi) expect(value).toBeLessThanOrEqual(hi)
  }
})

property([integers, values], RUNS)('a sum has the value of its terms', (e, at) => {
  const { terms, constant } = linear(e)
  const sum = [...terms.values()].reduce((n, t) => n + t.coefficient * evaluate(t.term, at), constant)
  expect(sum).toBe(evaluate(e, at) + 0)
})

property([integers, integers, integers], RUNS)('equal sums have one key, however written', (a, b, c) => {
  const key = linearKey(linear(add(a, add(b, mul(c, int(3))))))
  expect(linearKey(linear(sub(add(add(c, b), add(c, c)), sub(b, add(a, b)))))).toBe(key)
})

property([integers, values, fc.constantFrom(2, 3, 4, 8)], RUNS)(
  'a divisor of an expression divides its value',
  (e, at, by) => {
    const of = new Map([...at, ['n', at.get('n')! * by]])
    const facts = new Facts({ sizes: [{ size: 'n', relation: 'multiple', by }] })
    const value = evaluate(e, of)
    const divisor = facts.divisor(e)
    expect(divisor === 0 ? value + 0 : Math.abs(value % divisor)).toBe(0)
  },
)

property([questions('x')], RUNS)('implied facts hold', ({ facts, of, end, at }) => {
  for (const cond of [lt(of, end), ge(of, int(0)), lt(of, int(20))])
    if (facts.implies(cond)) expect(evaluate(cond, at)).toBe(1)
})

test('a value under the minimum of a bound is below the bound', () => {
  const facts = new Facts()
  const words = max(ceildiv(variable('n'), int(32)), int(1))
  expect([int(0), int(1)].map((e) => facts.below(e, words))).toEqual([true, false])
})

test('a normal form has the value of the expression', () => {
  const facts = new Facts()
  for (const [name, { extent }] of EXTENTS) facts.coordinate(variable(name), extent)
  let cases = 0
  fc.assert(
    fc.property(fc.oneof(integers, quotients), values, (e, at) => {
      const { terms, constant } = facts.form(e)
      // What is no form of anything has no value either.
      if ([...terms.values()].some((t) => [...freeVars(t.term)].some((v) => v.startsWith('?')))) return
      cases++
      const sum = [...terms.values()].reduce((n, t) => n + t.coefficient * evaluate(t.term, at), constant)
      expect(sum).toBe(evaluate(e, at) + 0)
      for (const x of [e, sub(int(0), e)])
        if (neverNegative(facts.form(x), facts)) expect(evaluate(x, at)).toBeGreaterThanOrEqual(0)
    }),
    RUNS,
  )
  expect(cases).toBeGreaterThan(RUNS.numRuns / 4)
})

property([questions('x')], RUNS)(
  'expressions that are proved nonnegative are nonnegative',
  ({ facts, of, end, at }) => {
    const proved = [sub(end, of), of, sub(of, end)].filter((e) => neverNegative(facts.form(e), facts))
    for (const e of proved) expect(evaluate(e, at)).toBeGreaterThanOrEqual(0)
  },
)

test.each(END_RULES)('less by rule: $name', (rule) => {
  const match = matcher(rule.match)
  let cases = 0
  fc.assert(
    fc.property(questions(rule.match), ({ facts, of, at }) => {
      const found = match(of)
      for (const end of found ? rule.ends(found, facts) : []) {
        cases++
        expect(evaluate(of, at)).toBeLessThan(evaluate(end, at))
      }
    }),
    { numRuns: runs(4000) },
  )
  expect(cases).toBeGreaterThan(0)
})

test.each(CONDITION_RULES)('equal by rule: $name', (rule) => {
  const rewrite = rewriter([rule])
  let cases = 0
  fc.assert(
    fc.property(questions(rule.match), ({ facts, of, at }) => {
      const simpler = rewrite(of, facts)
      if (!simpler) return
      cases++
      expect(evaluate(simpler, at)).toBe(evaluate(of, at))
    }),
    { numRuns: runs(4000) },
  )
  expect(cases).toBeGreaterThan(0)
})

test('each stated bound is implied, whatever the number and order of bounds', () => {
  const [facts, x] = [new Facts(), variable('x')]
  const ends = Array.from({ length: 20 }, (_, k) => variable(`n${k}`))
  for (const end of ends) facts.isBelow(x, end)
  expect(ends.every((end) => facts.implies(lt(x, end)))).toBe(true)
})

test('no bound of a float is implied', () => {
  const remainder = binary('mod', variable('x', 'f32'), constant(3, 'f32'))
  // NaN is not below 3, and neither is the remainder of -1e-9, which is rounded to 3.
  expect(new Facts().implies(lt(remainder, constant(3, 'f32')))).toBe(false)
  expect(new Facts().implies(lt(binary('mod', variable('x'), int(3)), int(3)))).toBe(true)
})

property([integers, fc.constantFrom('lt', 'le', 'gt', 'ge', 'eq', 'ne')], RUNS)(
  'a comparison of an integer with itself is decided',
  (e, op) => {
    const value = variable('x', 'f32')
    expect(binary(op, add(e, int(1)), add(e, int(1)))).toEqual(bool(['le', 'ge', 'eq'].includes(op)))
    // NaN differs from itself.
    expect(binary(op, value, value).kind).toBe('binary')
  },
)

test.each(RELAXATIONS)('between by rule: $name', (rule) => {
  const match = matcher(rule.match)
  let cases = 0
  fc.assert(
    fc.property(questions(rule.match), ({ of, at }) => {
      const found = match(of)
      const valuesOf = (list: readonly Expr[] = []): number[] => list.map((e) => evaluate(e, at))
      if (!found || !valuesOf(rule.where?.(found)).every((n) => n >= 0)) return
      const value = (rule.times?.(found) ?? 1) * evaluate(of, at)
      for (const n of valuesOf(rule.low?.(found))) expect(value).toBeGreaterThanOrEqual(n)
      for (const n of valuesOf(rule.high?.(found))) expect(value).toBeLessThanOrEqual(n)
      if (rule.oneOf) expect(valuesOf(rule.oneOf(found))).toContain(value)
      cases++
    }),
    { numRuns: runs(1000) },
  )
  expect(cases).toBeGreaterThan(0)
})

/** Digits under constants and sizes: strides are exact, or drawn, and sometimes beyond. */
const digits: fc.Arbitrary<readonly Digit<string>[]> = fc
  .array(
    fc.record({
      extent: fc.constantFrom<Expr>(int(1), int(2), int(3), variable('n')),
      gap: fc.constantFrom(0, 0, 0, 0, 1, 2),
      shift: fc.constantFrom(0, 0, 0, 0, 0, -1),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .chain((drawn) => {
    let stride: Expr = int(1)
    const terms = drawn.map(({ extent, gap, shift }, k) => {
      const own = add(stride, int(stride.kind === 'const' ? gap + shift : shift))
      stride = mul(extent, own)
      return { of: `x${k}`, stride: own, extent }
    })
    return fc.shuffledSubarray(terms, { minLength: terms.length })
  })

test('the digits of a mixed-radix number are recovered, and a dense number has every value', () => {
  let [told, all] = [0, 0]
  fc.assert(
    fc.property(digits, fc.integer({ min: 1, max: 3 }), (terms, n) => {
      const number = mixedRadix(terms)
      if (!number) return
      told++
      const at = new Map([['n', n]])
      const numberOf = (e: Expr | undefined): number => evaluate(e!, at)
      expect(new Set(number.digits)).toEqual(new Set(terms))
      let sums = [0]
      for (const d of number.digits)
        sums = sums.flatMap((s) =>
          Array.from({ length: numberOf(d.extent) }, (_, k) => s + k * numberOf(d.stride)),
        )
      expect(new Set(sums).size).toBe(sums.length)
      if (!number.dense) return
      all++
      const unit = numberOf(number.digits[0]!.stride)
      expect(Math.max(...sums)).toBe(unit * (sums.length - 1))
    }),
    RUNS,
  )
  expect(told).toBeGreaterThan(RUNS.numRuns / 4)
  expect(all).toBeGreaterThan(RUNS.numRuns / 8)
})

const few = fc.integer({ min: -3, max: 3 })
property([few, few, few, fc.boolean(), fc.boolean(), fc.boolean()], RUNS)(
  'a narrowed bound is known if what gives it is',
  (from, length, at, isLo, isHi, isStated) => {
    const [lo, hi] = [isStated ? at : LOWEST, isStated ? at + 3 : Infinity]
    const range = interval(from, from + Math.abs(length), isLo, isHi)
    const now = narrowed(range, lo, hi)
    expect(now.knownLo).toBe(isLo || (isStated && now.lo === lo))
    if (now.hi >= from) expect(now.knownHi).toBe(isHi || (isStated && hi <= range.hi))
  },
)

const ENDS = fc.constantFrom(LOWEST, -3, 0, 2, 2 ** 31 - 1)
const intervals = fc
  .tuple(ENDS, ENDS, fc.boolean(), fc.boolean())
  .map(([x, y, knownLo, knownHi]) => interval(Math.min(x, y), Math.max(x, y), knownLo, knownHi))

property([intervals, intervals], RUNS)('a product has the bounds of its swapped factors', (a, b) => {
  expect(binaryInterval('mul', a, b)).toEqual(binaryInterval('mul', b, a))
})
