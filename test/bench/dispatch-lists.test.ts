/** Lists of schedules made of what was measured. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Judged } from '../../bench/model/judging.ts'
import { greedy, listed, pickFrom } from '../../bench/model/lists.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const caseOf = (name: string, width: number, times: Readonly<Record<string, number>>): Judged => ({
  name,
  suite: 'spmm',
  width,
  data: name,
  group: name,
  guesses: Object.entries(times).map(([candidate, time]) => ({ candidate, time, expected: time })),
  standard: null,
  chosen: null,
  best: Math.min(...Object.values(times)),
})

const NAMES = ['a(1)', 'b(2)', 'c(3)', 'd(4)']
const measured = fc.array(fc.tuple(...NAMES.map(() => fc.integer({ min: 1, max: 50 }))), {
  minLength: 1,
  maxLength: 12,
})

property([measured, fc.integer({ min: 1, max: 4 })], { numRuns: runs(100) })(
  'begin with the best single schedule, and no longer list is worse if predictions hold',
  (times, most) => {
    const cases = listed(
      times.map((row, k) =>
        caseOf(`${k}`, 32, Object.fromEntries(NAMES.map((n, c) => [`spmm.spt:spmm.${n}`, row[c]!]))),
      ),
    )
    const loss = (list: readonly string[]): number =>
      cases.reduce((sum, c) => sum + pickFrom(c, list)!.time / c.case.best, 0)
    const list = greedy(cases, most)
    expect(list.length).toBeLessThanOrEqual(most)
    expect(new Set(list).size).toBe(list.length)
    expect(loss(list.slice(0, 1))).toBeCloseTo(Math.min(...NAMES.map((n) => loss([n]))))
    list.forEach((_, k) => {
      if (k > 0) expect(loss(list.slice(0, k + 1))).toBeLessThan(loss(list.slice(0, k)))
    })
    // Nothing that is left would still help.
    if (list.length < most)
      for (const n of NAMES) expect(loss([...list, n])).toBeGreaterThanOrEqual(loss(list) - 1e-9)
  },
)

test('an argument that is the width everywhere is written as the size', () => {
  const cases = [32, 128].map((d) =>
    caseOf(`${d}`, d, { [`s.spt:s.edges(${d},16,1)`]: 1, 's.spt:s.wide(128,2)': 2, 's.spt:s.gpu': 3 }),
  )
  expect([...new Set(listed(cases).flatMap((c) => [...c.guesses.keys()]))]).toEqual([
    'edges(d, 16, 1)',
    'wide(128, 2)',
    'gpu',
  ])
})

test('unmeasured candidates of a case are not used', () => {
  const [only] = listed([caseOf('x', 32, { 's.spt:s.a(1)': 5, 's.spt:s.b(2)': 3 })])
  expect(pickFrom(only!, ['a(1)', 'c(3)'])!.time).toBe(5)
  expect(pickFrom(only!, ['c(3)'])).toBeNull()
})
