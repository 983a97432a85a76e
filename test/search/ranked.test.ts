/** Rankings of many points by predictions of few: what is said to be predicted was, and is what comes first. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kernel } from '../../src/api/kernel.ts'
import { pointKey } from '../../src/search/points.ts'
import { ranked } from '../../src/search/ranked.ts'
import { cholesky, solvedLower, solvedUpper } from '../../src/search/ranking/cholesky.ts'
import type { Predict } from '../../src/search/ranking/origin.ts'
import { decisionsOf, PointRegression } from '../../src/search/ranking/point-regression.ts'
import type { KernelSpace, Point } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

/** Points of three forms, of which the kernels are the points themselves. */
const all: readonly Point[] = ['lists(a)', 'blocks(a, 4)', 'blocks(a, 16)'].flatMap((use) =>
  [1, 2, 4, 8, 16].flatMap((a) =>
    [1, 2, 4, 8, 16].flatMap((b) =>
      [1, 2, 4, 8].map((c) => ({ use, a, b, ...(use === 'lists(a)' ? {} : { c }) })),
    ),
  ),
)
const points = [...new Map(all.map((p) => [pointKey(p), p])).values()]
const space = { name: 'points', next: () => null, kernel: (p: Point) => p } as unknown as KernelSpace<Kernel>

const asking = (cost: (p: Point) => number) => {
  const asked: string[] = []
  const predict = ((p: Point) => {
    asked.push(pointKey(p))
    return { milliseconds: cost(p) }
  }) as unknown as Predict
  return { asked, predict }
}

interface Hill {
  readonly a: number
  readonly b: number
  readonly block: number
  readonly refused: number
}
const smooth =
  (h: Hill) =>
  (p: Point): number => {
    const [a, b] = [Math.log2(p.a as number), Math.log2(p.b as number)]
    if (p.a === 2 ** h.refused) throw new Error('refused')
    return Math.exp(0.1 * (a - h.a) ** 2 + 0.1 * (b - h.b) ** 2 + (p.use === 'lists(a)' ? 0 : h.block))
  }
const level = fc.integer({ min: 0, max: 4 })
const hills = fc.record({ a: level, b: level, block: fc.integer({ min: -2, max: 2 }), refused: level })

describe('ranked', () => {
  test('tells what was predicted from what was estimated, and predicts what comes first', () => {
    fc.assert(
      fc.property(hills, fc.integer({ min: 10, max: 80 }), (hill, predicted) => {
        const cost = smooth(hill)
        const { asked, predict } = asking(cost)
        const found = ranked(space, predict, points, { predicted, threads: 0 })
        expect(new Set(found.map((r) => pointKey(r.point)))).toEqual(new Set(points.map(pointKey)))
        expect(new Set(asked).size).toBe(asked.length)
        const sure = found.filter((r) => r.deviation === 0)
        expect(new Set(sure.map((r) => pointKey(r.point)))).toEqual(new Set(asked))
        for (const { point, milliseconds } of sure)
          expect(milliseconds).toBe(point.a === 2 ** hill.refused ? Number.POSITIVE_INFINITY : cost(point))
        expect(found.slice(0, 16).every((r) => r.deviation === 0)).toBe(true)
        expect(found.map((r) => r.milliseconds)).toEqual(
          found.map((r) => r.milliseconds).toSorted((x, y) => x - y),
        )
      }),
      { numRuns: runs(30) },
    )
  })

  test('finds what is about the fastest where costs are smooth in the numbers of each form', () => {
    fc.assert(
      fc.property(hills, (hill) => {
        const cost = smooth(hill)
        const { asked, predict } = asking(cost)
        const [first] = ranked(space, predict, points, { predicted: 80, threads: 0 })
        expect(asked.length).toBeLessThan(105)
        const legal = points.filter((p) => p.a !== 2 ** hill.refused)
        expect(first!.milliseconds).toBeLessThan(1.2 * Math.min(...legal.map(cost)))
      }),
      { numRuns: runs(30) },
    )
  })

  test('few points are all predicted, and refused ones are last', () => {
    const { asked, predict } = asking((p) => (p.a === 4 ? Number.NaN : (p.b as number)))
    const found = ranked(space, predict, points.slice(0, 100), { predicted: 51, threads: 0 })
    expect(asked.length).toBe(100)
    expect(found.every((r) => r.deviation === 0)).toBe(true)
    expect(found.findIndex((r) => r.point.a === 4)).toBe(
      found.length - found.filter((r) => r.point.a === 4).length,
    )
    expect(ranked(space, predict, points, { predicted: Number.POSITIVE_INFINITY }).length).toBe(points.length)
    expect(ranked(space, predict, [])).toEqual([])
  })

  test('where all is refused, all is predicted so', () => {
    const { predict } = asking(() => Number.POSITIVE_INFINITY)
    const found = ranked(space, predict, points, { predicted: 20, threads: 0 })
    expect(found.every((r) => r.milliseconds === Number.POSITIVE_INFINITY && r.deviation === 0)).toBe(true)
  })

  test('what is no count of predictions is refused', () => {
    const { predict } = asking(() => 1)
    expect(refusal(() => ranked(space, predict, points, { predicted: -1 })).code).toBe('api/argument')
    expect(refusal(() => ranked(space, predict, 3 as never)).code).toBe('api/argument')
  })
})

test('a regression goes through what it knows, and is less sure of what is further away', () => {
  const at = decisionsOf(points)
  const known = at.filter((_, k) => k % 3 === 0)
  const values = known.map((_, k) => Math.sin(k))
  const found = PointRegression.fit(known, values)
  for (const [k, d] of known.entries()) expect(Math.abs(found.expect(d).mean - values[k]!)).toBeLessThan(0.2)
  const [near, far] = decisionsOf([...points, { use: 'other', a: 1024 }]).slice(-2)
  const of = PointRegression.fit(
    decisionsOf([...points, { use: 'other', a: 1024 }]).slice(0, 50),
    Array(50).fill(1),
  )
  expect(of.expect(far!).deviation).toBeGreaterThan(of.expect(near!).deviation)
})

test('triangular systems of a product of a matrix with itself are solved', () => {
  const numbers = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 25, maxLength: 25 })
  fc.assert(
    fc.property(numbers, numbers, (m, v) => {
      const n = 5
      const product = Float64Array.from({ length: n * n }, (_, at) => {
        const [i, j] = [Math.floor(at / n), at % n]
        return v.slice(0, n).reduce((sum, _, k) => sum + m[i * n + k]! * m[j * n + k]!, i === j ? 1 : 0)
      })
      const b = Float64Array.from(v.slice(0, n))
      const lower = cholesky(product.slice(), n)
      const x = solvedUpper(lower, solvedLower(lower, b.slice()))
      for (let i = 0; i < n; i++)
        expect(x.reduce((sum, y, k) => sum + y * product[i * n + k]!, 0)).toBeCloseTo(b[i]!, 6)
    }),
    { numRuns: runs(50) },
  )
})
