/** Ranking takes a part of a search's time: what there is no time to ask the prior about is tried last, and asked later. */
import { expect, test } from 'vitest'
import { Expected } from '../../src/search/expected.ts'
import { RankingTime } from '../../src/search/ranking-time.ts'
import { atOnce } from '../../src/search/stepwise.ts'
import type { Point } from '../../src/search/types.ts'

const points = Array.from({ length: 400 }, (_, a): Point => ({ a }))

/** A prior that takes 100 ms of its own clock for each point. */
function slow(seconds: number | undefined) {
  let clock = 0
  const asked: Point[] = []
  const expected = Expected.of((some) => {
    asked.push(...some)
    clock += 100 * some.length
    return some.map((p) => 1 + Number(p.a))
  })
  const time = new RankingTime(seconds, () => clock)
  const wait = (ms: number): void => {
    clock += ms
  }
  return { expected, time, asked, wait }
}

test('at first the prior is asked for 10 s, or a quarter of the search, then for a quarter of the time so far', () => {
  for (const [seconds, first] of [
    [400, 100],
    [60, 100],
    [8, 20],
  ] as const) {
    const { expected, time, asked, wait } = slow(seconds)
    const costs = atOnce(expected.asked(points, time))
    expect(asked).toHaveLength(first)
    expect(costs.filter(Number.isFinite)).toHaveLength(first)
    for (const [k, cost] of costs.entries()) if (Number.isFinite(cost)) expect(cost).toBe(k + 1)
    // From all over the list.
    expect(Math.max(...asked.map((p) => Number(p.a)))).toBeGreaterThan(350)
    atOnce(expected.asked(points, time))
    expect(asked).toHaveLength(first)
    wait(90_000)
    atOnce(expected.asked(points, time))
    expect(asked.length / first).toBeGreaterThan(2)
    expect(new Set(asked).size).toBe(asked.length)
  }
})

test('a share of the time that is left is that', () => {
  const { expected, time, asked } = slow(60)
  atOnce(expected.asked(points, time, 1 / 2))
  expect(asked).toHaveLength(50)
  atOnce(expected.asked(points, time, 1 / 2))
  expect(asked).toHaveLength(75)
})

test('a search without an end asks for all, in their order', () => {
  const { expected, time, asked } = slow(undefined)
  expect(atOnce(expected.asked(points, time))).toEqual(points.map((p) => 1 + Number(p.a)))
  expect(asked).toEqual(points)
})
