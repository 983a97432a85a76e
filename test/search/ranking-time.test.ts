/** Ranking takes a part of a search's time: what there is no time to ask the prior about is tried last, and asked later. */
import { expect, test, vi } from 'vitest'
import { runSync } from '../../src/ast/work.ts'
import { Expected, RankingTime } from '../../src/search/ranking/expected.ts'
import { STRATEGIES } from '../../src/search/strategies/index.ts'
import type { Point, PointSpace } from '../../src/search/types.ts'

const model = STRATEGIES.model!

const points = Array.from({ length: 400 }, (_, a): Point => ({ a }))

/** A prior that takes 100 ms of its own clock for each point. */
function slow(limits: ConstructorParameters<typeof RankingTime>[0]) {
  let clock = 0
  const asked: Point[] = []
  const expected = Expected.of((some) => {
    asked.push(...some)
    clock += 100 * some.length
    return some.map((p) => 1 + Number(p.a))
  })
  const time = new RankingTime(limits, () => clock)
  const wait = (ms: number): void => {
    clock += ms
  }
  return { expected, time, asked, wait }
}

test('pauses of the search do not count as time for ranking', () => {
  const { expected, time, asked, wait } = slow({ seconds: 400 })
  const work = expected.costs(points, time)
  while (!work.next().done) wait(1)
  expect(time.spent).toBe(100 * asked.length)
})

test('the prior first takes 1.5 s or a quarter of the search, later a quarter of the elapsed time', () => {
  for (const [seconds, first] of [
    [400, 15],
    [60, 15],
    [4, 10],
  ] as const) {
    const { expected, time, asked, wait } = slow({ seconds })
    const costs = runSync(expected.costs(points, time))
    expect(asked).toHaveLength(first)
    expect(costs.filter(Number.isFinite)).toHaveLength(first)
    for (const [k, cost] of costs.entries()) if (Number.isFinite(cost)) expect(cost).toBe(k + 1)
    // From all over the list.
    expect(Math.max(...asked.map((p) => Number(p.a)))).toBeGreaterThan(350)
    runSync(expected.costs(points, time))
    expect(asked).toHaveLength(first)
    wait(90_000)
    runSync(expected.costs(points, time))
    expect(asked.length / first).toBeGreaterThan(2)
    expect(new Set(asked).size).toBe(asked.length)
  }
})

test('a fraction of the remaining time is respected', () => {
  const { expected, time, asked } = slow({ seconds: 60 })
  runSync(expected.costs(points, time, 1 / 2))
  expect(asked).toHaveLength(8)
  runSync(expected.costs(points, time, 1 / 2))
  expect(asked).toHaveLength(12)
})

test('work within the remaining time ends with it', () => {
  const { time, wait } = slow({ seconds: 60 })
  let steps = 0
  const work = function* (count: number): Generator<undefined, string, undefined> {
    for (let k = 0; k < count; k++) {
      steps++
      wait(100)
      yield
    }
    return 'done'
  }
  expect(runSync(time.within(work(5)))).toBe('done')
  expect(runSync(time.within(work(1000)))).toBeNull()
  expect(steps).toBeLessThan(20)
  expect(time.left).toBeLessThanOrEqual(0)
})

test('a search without a limit ranks all points, in their order', () => {
  const { expected, time, asked } = slow({})
  expect(runSync(expected.costs(points, time))).toEqual(points.map((p) => 1 + Number(p.a)))
  expect(asked).toEqual(points)
})

test('for few trials the prior takes at least a quarter of their time, and more if they take longer', () => {
  for (const [trials, first] of [
    [64, 15],
    [20, 10],
    [10_000, 15],
  ] as const) {
    const { expected, time, asked, wait } = slow({ trials })
    runSync(expected.costs(points, time))
    expect(asked).toHaveLength(first)
    wait(60_000)
    runSync(expected.costs(points, time))
    expect(asked.length).toBeGreaterThan(first)
  }
})

const NAMES = Array.from({ length: 16 }, (_, a) => `v${a}`)
const wide: PointSpace = {
  name: 'wide',
  next(p) {
    const name = ['a', 'b', 'c'].find((n) => !(n in p))
    return name === undefined ? null : { name, values: NAMES, ordered: false }
  },
}

test.each([100, 500, 100_000])('the first of %d trials comes within two seconds', (trials) => {
  let clock = 0
  const prior = (some: readonly Point[]): number[] => {
    clock += 15 * some.length
    return some.map((_, k) => k)
  }
  const now = vi.spyOn(performance, 'now').mockImplementation(() => clock)
  try {
    expect(model(wide, { seed: 3, prior, trials }).ask(1)).toHaveLength(1)
    expect(clock).toBeLessThan(2000)
  } finally {
    now.mockRestore()
  }
})

test('the first trial does not wait for the whole ranking, and later points are ranked in turn', () => {
  let clock = 0
  let count = 0
  const prior = (some: readonly Point[]): number[] => {
    count += some.length
    clock += 15 * some.length
    return some.map((p) => Object.values(p).reduce<number>((sum, v) => sum + Number(`${v}`.slice(1)), 1))
  }
  const now = vi.spyOn(performance, 'now').mockImplementation(() => clock)
  try {
    const strategy = model(wide, { seed: 3, prior, trials: 24 })
    const [first] = strategy.ask(1)
    // A quarter of 24 trials of 0.2 s each, and what was begun before that was over.
    expect(clock).toBeLessThan(1300)
    const atFirst = count
    expect(atFirst).toBeGreaterThan(40)
    const timing = { median: 1, interval: null, samples: [1] }
    for (let [n, last] = [0, first!]; n < 5; n++) {
      clock += 2000
      strategy.tell([{ point: last, outcome: { status: 'measured', timing } }])
      last = strategy.ask(1)[0]!
    }
    expect(count).toBeGreaterThan(2 * atFirst)
    expect(clock).toBeLessThan(15_000)
  } finally {
    now.mockRestore()
  }
})
