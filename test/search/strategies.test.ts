/** Laws of all strategies, on drawn spaces, whatever is told. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { pointKey, points } from '../../src/search/spaces/points.ts'
import { STRATEGIES, strategyNamed } from '../../src/search/strategies/index.ts'
import type { Point, PointSpace, Strategy, StrategyOptions, Trial } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { refusal } from '../support/refusal.ts'
import { drawnOutcome, landscape, measured } from './outcomes.ts'
import { type DrawnSpace, drawnSpace } from './random-space.ts'

const numbers = fc.noBias(choiceNumbers(200))
const NAMES = Object.keys(STRATEGIES)

/** Priors that say little, nothing, or that some are refused. */
const PRIORS: readonly StrategyOptions['prior'][] = [
  (ps) => ps.map(landscape),
  (ps) => ps.map(() => 1),
  (ps) => ps.map((p) => (landscape(p) > 5 ? Number.POSITIVE_INFINITY : -landscape(p))),
  (ps) => ps.map((p) => (landscape(p) > 5 ? Number.POSITIVE_INFINITY : 0)),
]

const optionsOf = (c: Choices, name: string): StrategyOptions => ({
  seed: c.below(1000),
  prior: name === 'model' || c.below(2) === 0 ? c.pick(PRIORS) : undefined,
})

interface Asking {
  readonly asked: readonly { readonly point: Point; readonly share: number }[]
}

/** Asks and tells until nothing is asked although all was told; some results come late. */
function exhaust(space: PointSpace, strategy: Strategy, c: Choices): Asking {
  const asked: { point: Point; share: number }[] = []
  let late: Trial[] = []
  for (let k = 0; k < 10_000; k++) {
    const some = strategy.ask(1 + c.below(4))
    if (some.length === 0 && late.length === 0) return { asked }
    for (const point of some) {
      const share = strategy.share?.(point) ?? 1
      asked.push({ point, share })
      late.push({ point, outcome: drawnOutcome(c), share })
    }
    if (some.length === 0 || c.below(3) > 0) {
      strategy.tell(late)
      late = []
    }
  }
  throw new Error(`${strategy.name} never ends on ${space.name}`)
}

describe.each(NAMES)('%s', (name) => {
  const property = (what: string, usual: number, check: (c: Choices, space: DrawnSpace) => void): void => {
    test(what, () => {
      fc.assert(
        fc.property(numbers, (choices) => {
          const c = new Choices(choices)
          check(c, drawnSpace(c, c.below(2) === 0))
        }),
        { numRuns: runs(usual) },
      )
    })
  }
  const made = (space: PointSpace, options: StrategyOptions): Strategy => strategyNamed(name)(space, options)

  property('proposes every point of a space once, and no other, for any outcomes', 30, (c, space) => {
    const { asked } = exhaust(space, made(space, optionsOf(c, name)), c)
    const shares = new Map<string, number>()
    for (const { point, share } of asked) {
      // Again only with more effort.
      expect(share).toBeGreaterThan(shares.get(pointKey(point)) ?? 0)
      expect(share).toBeLessThanOrEqual(1)
      shares.set(pointKey(point), share)
    }
    expect([...shares.keys()].sort()).toEqual(space.all.map(pointKey).sort())
  })

  property('is deterministic', 15, (c, space) => {
    const options = optionsOf(c, name)
    const course = (): string[] => {
      const strategy = made(space, options)
      const out: string[] = []
      for (let k = 0; k < 12; k++) {
        const some = strategy.ask(1 + (k % 3))
        out.push(...some.map(pointKey))
        strategy.tell(some.map((point) => ({ point, outcome: measured(landscape(point)) })))
      }
      return out
    }
    expect(course()).toEqual(course())
  })

  property('does not propose reported points, and ignores other spaces', 15, (c, space) => {
    const strategy = made(space, optionsOf(c, name))
    const told = space.all.filter(() => c.below(2) === 0)
    strategy.tell(told.map((point) => ({ point, outcome: measured(landscape(point)) })))
    strategy.tell([
      { point: { other: 3 }, outcome: measured(1) },
      { point: { d0: 'none', constructor: 1 }, outcome: { status: 'wrong', message: '' } },
    ])
    const { asked } = exhaust(space, strategy, c)
    const keys = new Set(told.map(pointKey))
    expect(asked.filter(({ point }) => keys.has(pointKey(point)))).toEqual([])
    expect(new Set(asked.map(({ point }) => pointKey(point))).size).toBe(space.all.length - told.length)
  })

  test('does not enumerate a space of 10^9 points', () => {
    let opened = 0
    const values = Array.from({ length: 10 }, (_, v) => v)
    const space: PointSpace = {
      name: 'huge',
      next(partial) {
        opened++
        const k = Object.keys(partial).length
        // A quarter of the second half is contradictory.
        if (k === 7 && Number(partial.d0) % 4 === 1) return { name: 'd7', values: [], ordered: true }
        return k === 9 ? null : { name: `d${k}`, values, ordered: k % 2 === 0 }
      },
    }
    const strategy = made(space, { seed: 3, prior: (ps) => ps.map(landscape) })
    const asked = new Set<string>()
    for (let k = 0; k < 12; k++) {
      const some = strategy.ask(2)
      expect(some).toHaveLength(2)
      for (const p of some) asked.add(pointKey(p))
      strategy.tell(some.map((point) => ({ point, outcome: measured(landscape(point)), share: 0.25 })))
    }
    expect(asked.size).toBeGreaterThan(name === 'halving' ? 12 : 23)
    expect(opened).toBeLessThan(2e6)
  })

  test('a space of one point without decisions, and one without points', () => {
    const one = made({ name: 'one', next: () => null }, { seed: 1, prior: PRIORS[1] })
    expect([...one.ask(3), ...one.ask(1)]).toEqual([{}])
    const none: PointSpace = { name: 'none', next: () => ({ name: 'a', values: [], ordered: false }) }
    expect(made(none, { seed: 1, prior: PRIORS[1] }).ask(2)).toEqual([])
  })

  test('rejects invalid counts and seeds', async () => {
    const space: PointSpace = { name: 'one', next: () => null }
    const strategy = made(space, { seed: 1, prior: PRIORS[1] })
    for (const n of [0, -1, 1.5, Number.NaN])
      expect(refusal(() => strategy.ask(n))).toMatchObject({ code: 'search/count' })
    expect(refusal(() => made(space, { seed: Number.NaN }))).toMatchObject({ code: 'search/seed' })
  })
})

test('exhaustive enumerates a space in the order of its values, or of the prior', () => {
  fc.assert(
    fc.property(numbers, (choices) => {
      const space = drawnSpace(new Choices(choices), false)
      const keys = (prior: StrategyOptions['prior']): string[] =>
        strategyNamed('exhaustive')(space, { seed: 1, prior }).ask(1000).map(pointKey)
      const all = [...points(space)]
      expect(keys(undefined)).toEqual(all.map(pointKey))
      const best = [...all].sort((a, b) => landscape(a) - landscape(b))
      expect(keys((ps) => ps.map(landscape))).toEqual(best.map(pointKey))
    }),
    { numRuns: runs(50) },
  )
})

test.each(['evolutionary', 'surrogate'])('%s learns which values are fast', (name) => {
  const values = [0, 1, 2, 3]
  const space: PointSpace = {
    name: 'sum',
    next(partial) {
      const k = Object.keys(partial).length
      return k === 8 ? null : { name: `d${k}`, values, ordered: true }
    },
  }
  const cost = (p: Point): number => 1 + Object.values(p).reduce<number>((n, v) => n + Number(v), 0)
  const strategy = strategyNamed(name)(space, { seed: 5 })
  const costs: number[] = []
  for (let k = 0; k < 80; k++) {
    const some = strategy.ask(1)
    costs.push(...some.map(cost))
    strategy.tell(some.map((point) => ({ point, outcome: measured(cost(point)) })))
  }
  // Points that are drawn cost 13 on average.
  const late = costs.slice(-20)
  expect(late.reduce((a, b) => a + b) / late.length).toBeLessThan(8)
})

test('a long search without a legal point is rejected, not continued for ever', async () => {
  const digits = Array.from({ length: 10 }, (_, v) => v)
  const space: PointSpace = {
    name: 'barren',
    next(partial) {
      const k = Object.keys(partial).length
      return { name: `d${k}`, values: k === 7 ? [] : digits, ordered: true }
    },
  }
  for (const name of ['random', 'exhaustive'])
    expect(refusal(() => strategyNamed(name)(space, { seed: 1 }).ask(1))).toMatchObject({
      code: 'search/dead-ends',
    })
})

test('an unknown strategy is rejected with similar names, and the model without a prior', async () => {
  expect(refusal(() => strategyNamed('evolutonary'))).toMatchObject({
    code: 'search/strategy',
    lookup: { candidates: NAMES },
  })
  expect(refusal(() => strategyNamed('constructor'))).toMatchObject({ code: 'search/strategy' })
  const space: PointSpace = { name: 'one', next: () => null }
  expect(refusal(() => strategyNamed('model')(space, { seed: 1 }))).toMatchObject({
    code: 'search/no-prior',
  })
  const given: readonly [unknown, string][] = [
    [[], 'has 0 numbers for 1 points'],
    [[Number.NaN], 'gives NaN for {}'],
    [[undefined], 'gives undefined for {}'],
    [['1'], 'gives "1" for {}'],
    [undefined, 'gives undefined for 1 points'],
    [Promise.resolve([1]), 'gives a promise for 1 points'],
  ]
  for (const [costs, said] of given)
    expect(
      refusal(() => strategyNamed('model')(space, { seed: 1, prior: () => costs as number[] }).ask(1)),
    ).toMatchObject({ code: 'search/prior', message: `the prior ${said}` })
})
