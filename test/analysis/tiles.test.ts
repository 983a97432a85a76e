/** Tiles: what is concluded about numbers of tiles and about sums of digits holds for every size, by enumeration. */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { Facts } from '../../src/analysis/integers/facts.ts'
import { tileReach, tileSize, tilings } from '../../src/analysis/integers/tiles.ts'
import { add, ceildiv, div, type Expr, int, mul, variable } from '../../src/ir/expressions/expr.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const RUNS = { numRuns: runs(400) }
const SIZES = [0, 1, 3, 4, 8, 17]
const n = variable('n')
const small = fc.constantFrom(1, 2, 3, 4, 6)
const end = fc.constantFrom<Expr>(n, n, add(n, int(3)), ceildiv(n, int(2)), int(4), int(5), int(12))
/** Numbers of tiles: rounded up once or twice, rounded down, or constant. */
const counted = (of: Expr, b: number, c: number): readonly Expr[] => [
  ceildiv(of, int(b)),
  ceildiv(ceildiv(of, int(b)), int(c)),
  div(of, int(b)),
  int(c),
]
const count = fc
  .tuple(end, small, small)
  .chain(([of, b, c]) => fc.tuple(fc.constant(of), fc.constantFrom(...counted(of, b, c))))

const at = (e: Expr, size: number, more: readonly (readonly [string, number])[] = []): number =>
  evaluate(e, new Map([['n', size], ...more]))
const conclusions = new Map<string, number>()
const concluded = (name: string): void => void conclusions.set(name, (conclusions.get(name) ?? 0) + 1)

property([count, end], RUNS)('a number of tiles is the rounded quotient', ([of, tiles], other) => {
  for (const t of tilings(tiles)) {
    for (const size of SIZES) {
      expect(at(tiles, size)).toBe(Math.ceil(at(t.total, size) / t.by) + 0)
    }
  }
  for (const bound of [of, other]) {
    const size = tileSize(tiles, bound)
    if (size === undefined) continue
    concluded('size')
    for (const s of SIZES) expect(at(tiles, s)).toBe(Math.ceil(at(bound, s) / size))
  }
})

property([count, end, small], RUNS)('the first element of each tile exists', ([of, tiles], other, c) => {
  const v = variable('v')
  const facts = new Facts({ end: (e) => (e === v ? tiles : undefined) })
  for (const bound of [of, other])
    for (const first of [v, mul(v, int(c))]) {
      if (!facts.below(first, bound)) continue
      concluded('begins')
      for (const s of SIZES)
        for (let k = 0; k < at(tiles, s); k++) expect(at(first, s, [['v', k]])).toBeLessThan(at(bound, s))
    }
})

/** Three digits, mostly dense, whose top digit mostly counts the tiles of the two below. */
const digits = fc
  .tuple(end, small, small, small)
  .chain(([of, a, b, c]) =>
    fc.tuple(
      fc.constant(of),
      fc.constantFrom(...counted(of, a * b, c), ceildiv(ceildiv(of, int(a)), int(b)), div(of, int(a * b))),
      fc.constant(a),
      fc.constant(b),
      fc.constantFrom(1, 1, 1, 2),
      fc.boolean(),
    ),
  )
property([digits, end, small], RUNS)(
  'digits take each value below their reach once',
  ([of, tiles, a, b, skip, isSwapped], other, by) => {
    const extents = [int(a), int(b), tiles]
    const strides = isSwapped ? [b, 1, a * b * skip] : [1, a, a * b * skip]
    const terms = extents.map((extent, k) => ({ of: k, stride: int(strides[k]!), extent }))
    const multiple = by * a
    const facts = new Facts({ sizes: [{ size: 'n', relation: 'multiple', by: multiple }] })
    for (const bound of [of, other]) {
      const reach = tileReach(terms, bound, facts)
      if (!reach) continue
      concluded(reach)
      for (const s of SIZES.map((size) => size * multiple)) {
        const [lengths, last] = [extents.map((e) => at(e, s)), at(bound, s)]
        const total = lengths.reduce((x, y) => x * y, 1)
        const values = Array.from({ length: total }, (_, k) => {
          const [x, y, z] = [k % a, Math.floor(k / a) % b, Math.floor(k / (a * b))]
          return x * strides[0]! + y * strides[1]! + z * strides[2]!
        })
        expect(values.sort((x, y) => x - y)).toEqual(Array.from({ length: total }, (_, k) => k))
        if (reach === 'exact') expect(total).toBe(last)
        else expect(total).toBeGreaterThanOrEqual(last)
        if (reach === 'partial') expect(total - last).toBeLessThan(Math.max(...strides))
      }
    }
  },
)

test('a whole tile after the end is beyond', () => {
  const reach = (elements: number) =>
    tileReach(
      [
        { of: 0, stride: int(4), extent: int(2) },
        { of: 1, stride: int(1), extent: int(4) },
      ],
      int(elements),
    )
  expect([9, 8, 5, 4].map(reach)).toEqual([undefined, 'exact', 'partial', 'beyond'])
})

afterAll(() => {
  for (const name of ['size', 'begins', 'exact', 'partial', 'beyond'])
    expect(conclusions.get(name) ?? 0, name).toBeGreaterThan(0)
})
