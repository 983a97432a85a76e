/** Conditions of runs are asked once only where all elements of a run answer alike. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Facts } from '../../src/analysis/integers/facts.ts'
import { boundOfRun } from '../../src/analysis/integers/mixed-radix.ts'
import { add, ceildiv, type Expr, ge, int, lt, mul, variable } from '../../src/ir/expressions/expr.ts'
import { mentions } from '../../src/ir/expressions/expr-tree.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs } from '../support/cases.ts'

interface Drawn {
  readonly width: number
  /** The place: x · a + y + lane · step + c. */
  readonly a: number
  readonly y: boolean
  readonly step: number
  readonly c: number
  readonly end: 'm' | 'm * w' | 'ceildiv(m, w) * w' | 'm + lane * w' | 'constant'
  readonly op: 'lt' | 'ge'
  /** What m is a multiple of, if that is said. */
  readonly by: number | null
}

const drawn: fc.Arbitrary<Drawn> = fc.constantFrom(2, 4, 8).chain((width) => {
  const near = fc.constantFrom(0, 0, 0, width, 2 * width, 1, width / 2)
  return fc.record({
    width: fc.constant(width),
    a: near,
    y: fc.constantFrom(false, false, true),
    step: fc.constantFrom(1, 1, 1, 0, 2),
    c: near,
    end: fc.constantFrom<Drawn['end']>(
      'm',
      'm',
      'm',
      'm * w',
      'ceildiv(m, w) * w',
      'm + lane * w',
      'constant',
    ),
    op: fc.constantFrom<Drawn['op']>('lt', 'lt', 'lt', 'ge'),
    by: fc.constantFrom(width, width, 2 * width, width / 2, null),
  })
})

const LANE = variable('lane')
const [x, y, m] = [variable('x'), variable('y'), variable('m')]

function conditionOf({ width, a, y: plus, step, c, end, op }: Drawn): Expr {
  const place = [mul(x, int(a)), ...(plus ? [y] : []), mul(LANE, int(step)), int(c)].reduce((s, t) =>
    add(s, t),
  )
  const ends = {
    m,
    'm * w': mul(m, int(width)),
    'ceildiv(m, w) * w': mul(ceildiv(m, int(width)), int(width)),
    'm + lane * w': add(m, mul(LANE, int(width))),
    constant: int(3 * width),
  }
  return op === 'lt' ? lt(place, ends[end]) : ge(place, ends[end])
}

const factsOf = ({ by }: Drawn): Facts =>
  new Facts({ sizes: by === null ? [] : [{ size: 'm', relation: 'multiple', by }] })

test('a condition evaluated once has one value in the whole run of elements', () => {
  const seen = { once: 0, each: 0 }
  fc.assert(
    fc.property(drawn, fc.nat(4), fc.nat(17), fc.nat(5), (d, xs, ys, ms) => {
      const g = conditionOf(d)
      const asked = boundOfRun(g, 'lane', d.width, factsOf(d))
      if (asked === g) seen.each++
      else seen.once++
      if (asked !== g) expect(mentions(asked, 'lane')).toBe(false)
      const size = d.by === null ? ms * 3 : ms * d.by
      for (let lane = 0; lane < d.width; lane++) {
        const vars = new Map([
          ['x', xs],
          ['y', ys],
          ['m', size],
          ['lane', lane],
        ])
        expect(evaluate(asked, vars)).toBe(evaluate(g, vars))
      }
    }),
    { numRuns: runs(2000) },
  )
  expect(seen.once).toBeGreaterThan(0)
  expect(seen.each).toBeGreaterThan(0)
})

test('aligned runs below a multiple are tested once', () => {
  fc.assert(
    fc.property(fc.constantFrom(2, 4, 8), fc.nat(3), fc.nat(3), fc.constantFrom(1, 2), (width, a, c, by) => {
      const place = add(add(mul(x, int(a * width)), LANE), int(c * width))
      const g = lt(place, m)
      const sizes = [{ size: 'm', relation: 'multiple', by: by * width } as const]
      const asked = boundOfRun(g, 'lane', width, new Facts({ sizes }))
      expect(mentions(asked, 'lane')).toBe(false)
      expect(boundOfRun(g, 'lane', width, new Facts({}))).toBe(g)
      expect(boundOfRun(g, 'other', width, new Facts({ sizes }))).toBe(g)
    }),
    { numRuns: runs(40) },
  )
})
