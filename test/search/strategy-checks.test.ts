/** Strategies of users: what they are, and what they ask for. */
import { expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { search } from '../../src/search/loop/search.ts'
import type { SearchOptions } from '../../src/search/loop/search-options.ts'
import type { PointSpace } from '../../src/search/types.ts'
import { measured } from './outcomes.ts'

const space: PointSpace = {
  name: 'four',
  next: (partial) => (partial.p === undefined ? { name: 'p', values: [0, 1, 2, 3], ordered: true } : null),
}

/** The code of the refusal. */
async function refused(strategy: unknown): Promise<string> {
  const evaluate: SearchOptions['evaluate'] = async (asked) => asked.map(() => measured(1))
  try {
    await search({ space, strategy: strategy as SearchOptions['strategy'], evaluate, trials: 3 })
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
  return 'nothing'
}

test.each<[string, (count: number) => unknown]>([
  ['space/point', () => [{ p: 99 }]],
  ['space/point', () => [{}]],
  ['api/argument', () => [null]],
  ['search/strategy', () => [{ p: 1 }]],
  ['search/strategy', () => [{ p: 1 }, { p: 2 }]],
  ['search/strategy', async () => [{ p: 1 }]],
  ['search/strategy', () => new Promise(() => {})],
  ['search/strategy', () => null],
  ['search/strategy', () => ({ p: 1 })],
])('%s: a strategy that proposes other than new points of the space: %s', async (code, ask) => {
  expect(await refused({ name: 'own', ask, tell() {} })).toBe(code)
})

test('an async ask is reported', async () => {
  const strategy = { name: 'own', ask: async () => [{ p: 1 }], tell() {} } as never
  const searched = search({ space, strategy, evaluate: async () => [], trials: 3 })
  await expect(searched).rejects.toMatchObject({
    diagnostics: [
      {
        message: 'a strategy must return at most 1 points, and returned a promise',
        hint: expect.stringContaining('only evaluate may be async'),
      },
    ],
  })
})

test('invalid strategies', async () => {
  for (const strategy of [() => null, () => ({}), () => ({ ask: () => [] }), { ask: () => [] }])
    expect(await refused(strategy)).toBe('search/strategy')
})

test('a rung grows to the full effort', async () => {
  const shared = (...shares: number[]) => ({
    name: 'own',
    ask: () => [{ p: 1 }],
    tell() {},
    share: () => shares.shift() ?? 1,
  })
  expect(await refused(shared(0.5, 1, 1))).toBe('search/strategy')
  expect(await refused(shared(0.5, 0.5))).toBe('search/strategy')
  expect(await refused(shared(0))).toBe('search/strategy')
  const expected = (...shares: number[]) =>
    search({
      space,
      strategy: shared(...shares),
      evaluate: async (of) => of.map(() => measured(1)),
      trials: 3,
    }).catch((e: SptError) => e.diagnostics[0]!.expected)
  expect(await expected(0)).toBe('a share of more than 0, at most 1')
  expect(await expected(0.5, 0.5)).toMatch(/^a new point, or a share of more than /)
  expect(await refused(shared(Number.NaN))).toBe('search/strategy')
})
