/** What counts as the fastest trials is one rule, of which the best of a search is the first. What a prior says is kept once. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fastestTrials, Tally } from '../../src/search/loop/tally.ts'
import { Expected } from '../../src/search/ranking/expected.ts'
import { pointKey } from '../../src/search/spaces/points.ts'
import { STRATEGIES } from '../../src/search/strategies/index.ts'
import type { Point, PointSpace, Trial } from '../../src/search/types.ts'
import { property } from '../support/property.ts'

const space: PointSpace = {
  name: 'numbers',
  next: (p) => (Object.hasOwn(p, 'k') ? null : { name: 'k', values: [0, 1, 2, 3, 4, 5], ordered: true }),
}

const trial = fc
  .tuple(
    fc.nat(5),
    fc.constantFrom('measured', 'measured', 'wrong', 'failed'),
    fc.integer({ min: 1, max: 9 }),
    fc.constantFrom(undefined, 0.25, 0.5),
  )
  .map(([k, status, median, share]): Trial => {
    const point = { k }
    const outcome =
      status === 'measured'
        ? ({ status, timing: { median, interval: [median, median], samples: [median] } } as const)
        : status === 'wrong'
          ? ({ status, message: 'differs' } as const)
          : ({ status: 'failed', code: 'a/b', message: 'broke' } as const)
    return share === undefined ? { point, outcome } : { point, outcome, share }
  })

property([fc.array(trial, { maxLength: 20 })])('the fastest trials', (trials) => {
  const tally = new Tally(space, 6)
  tally.add(trials)
  const fastest = fastestTrials(tally)
  const median = (t: Trial): number =>
    t.outcome.status === 'measured' ? t.outcome.timing.median : Number.NaN
  // The first is as good as the best of the search, none was wrong, and each point is there once.
  const { best } = tally.found
  expect(fastest[0] && [fastest[0].share ?? 1, median(fastest[0])]).toEqual(
    best ? [best.share ?? 1, median(best)] : undefined,
  )
  const wrong = new Set(tally.wrong.map((w) => pointKey(w.point)))
  const keys = fastest.map((t) => pointKey(t.point))
  expect(keys.filter((k) => wrong.has(k))).toEqual([])
  const measured = trials.filter((t) => t.outcome.status === 'measured' && !wrong.has(pointKey(t.point)))
  expect(new Set(keys)).toEqual(new Set(measured.map((t) => pointKey(t.point))))
  expect(keys).toHaveLength(new Set(keys).size)
  for (const [k, t] of fastest.entries()) {
    const next = fastest[k + 1]
    if (next)
      expect(
        (t.share ?? 1) > (next.share ?? 1) || (t.share === next.share && median(t) <= median(next)),
      ).toBe(true)
  }
})

test('a prior is evaluated once for each point', () => {
  const asked: Point[] = []
  const expected = Expected.of((points) => {
    asked.push(...points)
    return points.map((p) => Number(p.k))
  })
  const strategy = STRATEGIES.model!(space, { seed: 1, prior: expected.prior })
  expect(strategy.ask(2)).toEqual([{ k: 0 }, { k: 1 }])
  expect(expected.of({ k: 3 })).toBe(3)
  expect(asked).toHaveLength(6)
  expect(Expected.of(expected.prior)).toBe(expected)
})
