/** What `spt show --space` says of spaces whose points are rare: what a search would. */
import { expect, test } from 'vitest'
import { spaceReport } from '../../src/cli/run/space-report.ts'
import type { KernelSpace, Point } from '../../src/search/types.ts'

const NAMES = ['u', 'v', 'w', 'x']

/** Four numbers up to 40 whose product is `product`. */
const space = (product: number): KernelSpace<unknown> => ({
  name: 'rare',
  next(partial: Point) {
    const name = NAMES[Object.keys(partial).length]
    if (name === undefined) return null
    const before = Object.values(partial).reduce<number>((n, v) => n * Number(v), 1)
    const all = Array.from({ length: 40 }, (_, k) => k + 1)
    const values = name === 'x' ? all.filter((v) => v * before === product) : all
    return { name, values, ordered: true, considered: all.length }
  },
  kernel: (point) => point,
})

test('one is looked for, where a sample finds none', () => {
  const text = spaceReport(space(37 * 31 * 29 * 23), 'rare', 'cpu', 5)
  expect(text).toMatch(
    /^points +few: a sample found none$\nrare +one is u = \d+, v = \d+, w = \d+, x = \d+$/m,
  )
})

test('values that no point has are told apart', () => {
  // With w = 1 and a product of 1,600 there are two points, of some thousand: the fours are in one, the sevens in none.
  const of = (u: readonly number[]): KernelSpace<unknown> => ({
    ...space(1600),
    next: (partial) =>
      Object.keys(partial).length === 0 ? { name: 'u', values: u, ordered: true } : space(1600).next(partial),
  })
  const text = spaceReport(of([4, 7]), 'rare', 'cpu', 0)
  expect(text).toMatch(/^u +4; no point was found with 7$/m)
})

test('where a search finds none, that is what is said', () => {
  expect(() => spaceReport(space(41 * 37 * 31 * 29), 'rare', 'cpu', 5)).toThrow(
    expect.objectContaining({ diagnostics: [expect.objectContaining({ code: 'search/dead-ends' })] }),
  )
})
