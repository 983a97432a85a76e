/** What `spt show --space` says of spaces whose points are rare: what a search would. */
import { describe, expect, test } from 'vitest'
import { spaceReport } from '../../src/cli/tune/space-report.ts'
import { load } from '../../src/node.ts'
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

test('searches for a legal point if a sample has none', () => {
  const text = spaceReport(space(37 * 31 * 29 * 23), 'rare', 'cpu', 5)
  expect(text).toMatch(/^points +few \(none in a sample\)$\nrare +u = \d+, v = \d+, w = \d+, x = \d+$/m)
})

test('reports values without a legal point', () => {
  // With w = 1 and a product of 1,600 there are two points, of some thousand: the fours are in one, the sevens in none.
  const of = (u: readonly number[]): KernelSpace<unknown> => ({
    ...space(1600),
    next: (partial) =>
      Object.keys(partial).length === 0 ? { name: 'u', values: u, ordered: true } : space(1600).next(partial),
  })
  const text = spaceReport(of([4, 7]), 'rare', 'cpu', 0)
  expect(text).toMatch(/^u +4; no sampled point has 7$/m)
})

test('reports a search without a legal point', () => {
  expect(() => spaceReport(space(41 * 37 * 31 * 29), 'rare', 'cpu', 5)).toThrow(
    expect.objectContaining({ diagnostics: [expect.objectContaining({ code: 'search/dead-ends' })] }),
  )
})

describe('decisions with thousands of values', () => {
  const counting = () => {
    let tried = 0
    const values = Array.from({ length: 4001 }, (_, v) => v)
    const wide: KernelSpace<unknown> = {
      name: 'wide',
      next(partial: Point) {
        const k = Object.keys(partial).length
        return k < 12 ? { name: 'abcdefghijkl'[k]!, values, ordered: true, considered: 0 } : null
      },
      remainderKey: (partial: Point) => String(Object.keys(partial).length),
      kernel(point) {
        tried++
        return point
      },
    }
    return { wide, tried: () => tried }
  }

  test('fewer points are tested, which is reported with the requested number and shown as progress', () => {
    const some = counting()
    const lines: string[] = []
    const text = spaceReport(some.wide, 'wide', 'cpu', undefined, (line) => lines.push(line))
    expect(lines).toEqual(['counting points …', 'trying points …', ''])
    expect(some.tried()).toBeLessThan(100)
    expect(text).toMatch(
      new RegExp(
        `^legal +${some.tried()} of ${some.tried()} sampled points \\(fewer than 100: .*--survey 100\\)$`,
        'm',
      ),
    )
    const all = counting()
    const more = some.tried() + 3
    expect(spaceReport(all.wide, 'wide', 'cpu', more)).toMatch(
      new RegExp(`^legal +${more} of ${more} sampled points$`, 'm'),
    )
    expect(all.tried()).toBe(more)
  })

  test('conditions on several parameters are evaluated at the last one', async () => {
    const names = ['a', 'b', 'c', 'd']
    const program = await load(`kernel q(n: size) {
  axis i = dense_fixed(n)
  buffer C: f32[i] inout
  iterate t [i] as S { C[i] = C[i] + 1 }
}
schedule q.s(${names.join(', ')}) { split t.i by 1 + a }
schedule q.sum choose by search {
  ${names.map((n) => `${n} from 0 to 2000`).join('\n  ')}
  only where ((a + b + c + d) % 7 == 0)
  use s(${names.join(', ')})
}`)
    const space = await program.kernel().space('sum').bind('cpu', { n: 8 })
    const opens = names.map((_, k) => space.next(Object.fromEntries(names.slice(0, k).map((n) => [n, 3]))))
    expect(opens.map((o) => [o!.considered, o!.values.length])).toEqual([
      [0, 2001],
      [0, 2001],
      [0, 2001],
      [2001, 286],
    ])
    // The list of a range that says the same everywhere is one.
    expect(opens[0]!.values).toBe(space.next({})!.values)
    const text = spaceReport(space, 'sum', 'cpu', 0)
    expect(text).toMatch(/^points +about [\d,]+, estimated from a sample$/m)
    expect(text).toMatch(/^a +0, 1, .* 2000 \(2001 values\); the sample has points with \d+ of them$/m)
  })
})
