/** Bounds of functions of bits: they hold for all operands within theirs, and are as narrow as the words that come out. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { endsOfBits } from '../../src/analysis/integers/bit-ranges.ts'
import { MATH } from '../../src/ir/values/math.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const RUNS = { numRuns: runs(3000) }
const word = fc.oneof(
  fc.integer({ min: -9, max: 9 }),
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  fc.nat(31).map((n) => 2 ** n - 1),
  fc.nat(31).map((n) => -(2 ** n)),
)
const operand = fc
  .tuple(word, word, word)
  .map((xs) => [...xs].sort((a, b) => a - b) as [lo: number, x: number, hi: number])
const functions = fc.constantFrom(
  'popcount' as const,
  'shift_left' as const,
  'shift_right' as const,
  'bit_and' as const,
  'bit_or' as const,
  'bit_xor' as const,
)

property([functions, operand, operand], RUNS)('results lie within the bounds', (fn, [a, x, b], [c, y, d]) => {
  const [lo, hi] = endsOfBits(fn, [a, b], [c, d])
  const value = MATH[fn].evaluate(x, y)
  expect(value).toBeGreaterThanOrEqual(lo)
  expect(value).toBeLessThanOrEqual(hi)
})

property([functions, operand, operand], RUNS)(
  'a result that may not fit has the range of a word',
  (fn, [a, x, b], [c, y, d]) => {
    const [lo, hi] = endsOfBits(fn, [a * 4 - 1, b * 4 + 1], [c * 4 - 1, d * 4 + 1])
    const value = MATH[fn].evaluate(x * 4, y * 4)
    expect(value).toBeGreaterThanOrEqual(lo)
    expect(value).toBeLessThanOrEqual(hi)
  },
)

const small = fc
  .tuple(fc.integer({ min: -20, max: 20 }), fc.nat(9))
  .map(([lo, n]) => Array.from({ length: n + 1 }, (_, k) => lo + k))

property([functions, small, small], RUNS)(
  'bounds of few numbers are near the values that occur',
  (fn, xs, ys) => {
    const [lo, hi] = endsOfBits(fn, [xs[0]!, xs.at(-1)!], [ys[0]!, ys.at(-1)!])
    const all = xs.flatMap((x) => ys.map((y) => MATH[fn].evaluate(x, y)))
    const most = 2 ** (32 - Math.clz32(Math.max(...[...xs, ...ys].map((x) => (x < 0 ? -1 - x : x)))))
    // Of bits that stay where they are signs are told, and there are no more than operands have.
    if (fn === 'bit_and' || fn === 'bit_or' || fn === 'bit_xor') {
      expect([lo < 0, hi < 0]).toEqual([all.some((v) => v < 0), all.every((v) => v < 0)])
      expect(hi).toBeLessThan(most)
      expect(lo).toBeGreaterThanOrEqual(-most)
    }
    const places = ys[0]!
    if (fn === 'shift_left' && places >= 0 && ys.at(-1)! < 20)
      expect([lo, hi]).toEqual([Math.min(...all), Math.max(...all)])
    if (fn === 'shift_right' && xs[0]! >= 0 && places >= 0)
      expect([lo, hi]).toEqual([Math.min(...all), Math.max(...all)])
  },
)
