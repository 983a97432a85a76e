/** Parts of distillation: the few schedules that suit all data together, and fitted times. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { load } from '../../src/node.ts'
import { cover } from '../../src/search/choice/cover.ts'
import { fitTimes } from '../../src/search/choice/fitted-times.ts'
import { runs } from '../support/cases.ts'

test('no exchange of one candidate improves a cover, and one more only if it is full', () => {
  const loss = fc.oneof(fc.nat(20), fc.constant(1e6))
  const table = fc
    .integer({ min: 1, max: 8 })
    .chain((cases) =>
      fc.array(fc.array(loss, { minLength: cases, maxLength: cases }), { minLength: 1, maxLength: 8 }),
    )
  fc.assert(
    fc.property(table, fc.integer({ min: 1, max: 4 }), (rows, most) => {
      const losses = rows.map((row) => Float64Array.from(row))
      const sum = (of: readonly number[]): number =>
        losses[0]!.reduce((n, _, c) => n + Math.min(...of.map((k) => losses[k]![c]!)), 0)
      const found = cover(losses, most)
      expect(found.length).toBeGreaterThan(0)
      expect(found.length).toBeLessThanOrEqual(most)
      for (const [k] of losses.entries()) {
        for (const at of found.keys())
          expect(sum(found.map((c, n) => (n === at ? k : c)))).toBeGreaterThanOrEqual(sum(found))
        if (found.length < most) expect(sum([...found, k])).toBe(sum(found))
      }
    }),
    { numRuns: runs(200) },
  )
})

test('times that are sums of terms are fitted exactly, up to three digits', async () => {
  const { source } = (await load('kernels/spmm.spt')).kernel('spmm')
  const size = fc.integer({ min: 1, max: 5000 })
  const data = fc.record({
    m: size,
    n: size,
    d: size,
    count: size,
    longest: size,
    share: fc.double({ min: 0.01, max: 1, noNaN: true }),
  })
  const weight = fc.double({ min: 0, max: 1, noNaN: true })
  const weights = fc.record({ one: weight, m: weight, count: weight, longest: weight, work: weight })
  fc.assert(
    fc.property(fc.array(data, { minLength: 40, maxLength: 40 }), weights, (all, w) => {
      const values = all.map(
        ({ m, n, d, count, longest, share }) =>
          new Map(
            Object.entries({ m, n, d, 'count(j)': count, 'longest(j)': longest, 'mean(j)': share * longest }),
          ),
      )
      const time = (k: number): number => {
        const { m, d, count, longest } = all[k]!
        return 1e-3 + w.one + w.m * m + w.count * count + w.longest * longest + w.work * count * d
      }
      const times = values.map((_, k) => (k % 7 === 0 ? null : time(k)))
      const [sum] = fitTimes(source, values, [times])!
      const errors = values.map((v, k) => Math.abs(evaluate(sum!, v) / time(k) - 1))
      expect(errors.reduce((n, e) => n + e, 0) / errors.length).toBeLessThan(0.02)
    }),
    { numRuns: runs(50) },
  )
  expect(fitTimes(source, [new Map([['m', 1]])], [[1]])).toBe(null)
})
