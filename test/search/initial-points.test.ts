/** Laws of the first points that a search by a model asks: of several kinds, each by its cost. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { search } from '../../src/search/loop/search.ts'
import { pointKey } from '../../src/search/spaces/points.ts'
import { STRATEGIES } from '../../src/search/strategies/index.ts'
import { rivals, varied } from '../../src/search/strategies/model.ts'
import type { Point, PointSpace } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'

const model = STRATEGIES.model!

const order = fc
  .array(fc.record({ kind: fc.constantFrom('a', 'b', 'c', 'd'), cost: fc.integer({ min: 1, max: 100 }) }), {
    minLength: 1,
    maxLength: 40,
  })
  .map((of) => of.sort((x, y) => x.cost - y.cost).map(({ kind, cost }, n) => ({ point: { n, kind }, cost })))

test('the n-th point of a kind is ordered as if it cost n times as much, within its kind by cost', () => {
  fc.assert(
    fc.property(order, fc.integer({ min: 1, max: 16 }), (of, most) => {
      const first = varied(of, most)
      expect(first).toHaveLength(Math.min(most, of.length))
      expect(first[0]).toEqual(of[0]!.point)
      const costs = first.map((p) => of.find(({ point }) => point.n === p.n)!.cost)
      const as = costs.map(
        (c, k) => c * first.slice(0, k + 1).filter((p) => p.kind === first[k]!.kind).length,
      )
      expect(as).toEqual([...as].sort((x, y) => x - y))
      const kinds = new Set(of.map(({ point }) => point.kind))
      for (const kind of kinds) {
        const own = of.filter(({ point }) => point.kind === kind).map(({ point }) => point)
        const taken = first.filter((p) => p.kind === kind)
        expect(taken).toEqual(own.slice(0, taken.length))
      }
      expect(rivals(of)).toBeLessThanOrEqual(kinds.size)
    }),
    { numRuns: runs(100) },
  )
})

test('rivals of the cheapest point cost little more than it', () => {
  const points = (...costs: number[]) => costs.map((cost, k) => ({ cost, point: { kind: `${k}` } }))
  expect([points(), points(1), points(1, 1.1, 100), points(1, 100, 101)].map(rivals)).toEqual([0, 1, 2, 1])
})

test('a kind with underestimated costs does not fill the first trials', () => {
  const space: PointSpace = {
    name: 'formats',
    next: ({ format, k }) =>
      format === undefined
        ? { name: 'format', values: ['praised', 'good', 'fair', 'bad'], ordered: false }
        : k === undefined
          ? { name: 'k', values: Array.from({ length: 40 }, (_, n) => n), ordered: true }
          : null,
  }
  const expected = { praised: 1, good: 2, fair: 2.5, bad: 100 }
  const prior = model(space, {
    seed: 1,
    prior: (of) => of.map((p) => expected[p.format as keyof typeof expected] * (1 + Number(p.k) / 1000)),
  })
  const first = prior.ask(8).map((p) => p.format)
  expect(first.filter((f) => f === 'praised').length).toBeLessThanOrEqual(5)
  expect(first).toContain('good')
  expect(first).toContain('fair')
  expect(first).not.toContain('bad')
})

/** Decisions of eight numbers each, all of which count; the least cost is 0 of all threes. */
const grid = (decisions: number): PointSpace => ({
  name: 'grid',
  next(partial) {
    const k = Object.keys(partial).length
    const values = Array.from({ length: 8 }, (_, v) => v)
    return k === decisions ? null : { name: `d${k}`, values, ordered: true }
  },
})
const far = (point: Point): number =>
  Object.values(point).reduce<number>((n, v) => n + (Number(v) - 3) ** 2, 1)

/** What is looked at before the first point is tried, and the points that are. */
async function begun(decisions: number, trials: number | undefined) {
  const looked = new Set<string>()
  const tried: Point[] = []
  let first = 0
  await search({
    space: grid(decisions),
    strategy: 'model',
    seed: 5,
    trials,
    patience: 4,
    prior(points) {
      for (const p of points) looked.add(pointKey(p))
      return points.map(far)
    },
    evaluate: async (asked) => {
      if (tried.length === 0) first = looked.size
      tried.push(...asked.map(({ point }) => point))
      return asked.map(({ point }) => {
        const ms = far(point)
        return { status: 'measured', timing: { median: ms, interval: null, samples: [ms] } }
      })
    },
  })
  return { looked: first, tried }
}

/** How long ranking takes decides nothing: the clock stands still. */
beforeEach(() => void vi.spyOn(performance, 'now').mockReturnValue(0))
afterEach(() => vi.restoreAllMocks())

test('for few trials few points are ranked, for more trials more, and the best is found', async () => {
  const [four, sixteen, many, any] = await Promise.all([4, 16, 128, undefined].map((n) => begun(8, n)))
  // Drawn: 32 a trial; in four rounds the neighbours of four of them, two for each decision.
  expect(four!.looked).toBeLessThanOrEqual(4 * 32 + 4 * 4 * 16)
  expect(sixteen!.looked).toBeGreaterThan(2 * four!.looked)
  expect(many!.looked).toBeGreaterThan(2 * sixteen!.looked)
  expect(many).toEqual(any)
  for (const { tried } of [four!, sixteen!, many!]) expect(far(tried[0]!)).toBeLessThanOrEqual(8)
  expect(await begun(8, 4)).toEqual(four)
})

test('all points of a small space are ranked, also for few trials', async () => {
  for (const trials of [1, 4]) {
    const { looked, tried } = await begun(2, trials)
    expect([looked, far(tried[0]!)]).toEqual([64, 1])
  }
})
