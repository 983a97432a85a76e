import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { applyMap, firstDifference, neverOverflows } from '../../src/columns/coordmap.ts'
import { compile } from '../../src/columns/expression-program.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import { add, binary, call, div, type Expr, int, mod, mul, neg, select, variable } from '../../src/ir/expr.ts'
import { keyOf } from '../../src/ir/structural-equality.ts'
import { runs } from '../support/cases.ts'

const [i, j, n, _io, _jo, _ii, _ji] = ['i', 'j', 'n', 'io', 'jo', 'ii', 'ji'].map((v) => variable(v))
const c = (name: string, extent: number) => ({ name, extent })

const { expr } = fc.letrec<{ expr: Expr }>((tie) => ({
  expr: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<Expr>(i!, j!, n!),
    fc.integer({ min: -20, max: 20 }).map(int),
    fc
      .tuple(
        fc.constantFrom('add', 'sub', 'mul', 'div', 'mod', 'min', 'max', 'quo', 'rem'),
        tie('expr'),
        tie('expr'),
      )
      .map(([op, a, b]) => binary(op, a, b)),
    fc
      .tuple(
        fc.constantFrom('lt', 'le', 'gt', 'ge', 'eq', 'ne'),
        tie('expr'),
        tie('expr'),
        tie('expr'),
        tie('expr'),
      )
      .map(([op, a, b, x, y]) => select(binary(op, a, b), x, y)),
    tie('expr').map((x) => neg(x)),
  ),
}))

describe('applyMap', () => {
  it('agrees with evaluation of one coordinate at a time', () => {
    fc.assert(
      fc.property(
        fc.array(expr, { minLength: 1, maxLength: 3 }),
        fc.array(fc.tuple(fc.nat(50), fc.nat(50)), { maxLength: 20 }),
        fc.nat(9),
        (map, points, size) => {
          const coords = [0, 1].map((k) => Int32Array.from(points, (p) => p[k]!))
          const expected = map.map((e) =>
            points.map(
              ([x, y]) =>
                evaluate(
                  e,
                  new Map([
                    ['i', x],
                    ['j', y],
                    ['n', size],
                  ]),
                ) | 0,
            ),
          )
          const wide = map.some((e) =>
            points.some(
              ([x, y]) =>
                Math.abs(
                  evaluate(
                    e,
                    new Map([
                      ['i', x],
                      ['j', y],
                      ['n', size],
                    ]),
                  ),
                ) >
                2 ** 31 - 1,
            ),
          )
          const apply = () => applyMap({ map, inputs: ['i', 'j'], sizes: new Map([['n', size]]) }, coords)
          if (wide) expect(apply).toThrow('format/map-range')
          else expect(apply().map((r) => [...r])).toEqual(expected)
        },
      ),
      { numRuns: runs(250) },
    )
  })

  it('finds where digits do not join to what is wanted', () => {
    const joined = { map: [add(mul(i!, int(16)), j!)], inputs: ['i', 'j'], extents: [4, 16] }
    const digits = [Int32Array.of(0, 1, 2), Int32Array.of(3, 0, 15)]
    expect(firstDifference(joined, digits, [Int32Array.of(3, 16, 47)])).toBeNull()
    expect(firstDifference(joined, digits, [Int32Array.of(3, 16, 46)])).toEqual({ entry: 2, found: [47] })
  })

  it('adds up comparisons of all kinds', () => {
    const flag = (op: 'gt' | 'lt' | 'ge', bound: Expr): Expr => select(binary(op, i!, bound), int(1), int(0))
    const at = [Int32Array.of(0, 2, 3, 4, 9)]
    for (const [terms, wanted] of [
      [
        [flag('gt', int(2)), flag('gt', int(3)), flag('gt', int(5))],
        [0, 0, 1, 2, 3],
      ],
      [
        [flag('gt', int(2)), select(binary('gt', i!, int(3)), int(5), int(0))],
        [0, 0, 1, 6, 6],
      ],
      [
        [flag('lt', int(2)), flag('lt', int(4))],
        [2, 1, 1, 0, 0],
      ],
      [
        [flag('gt', int(2)), flag('gt', n!)],
        [0, 0, 1, 2, 2],
      ],
    ] as const)
      expect([
        ...applyMap({ map: [terms.reduce(add)], inputs: ['i'], sizes: new Map([['n', 3]]) }, at)[0]!,
      ]).toEqual(wanted)
  })

  it('handles more coordinates than a chunk holds', () => {
    const length = 5000
    const coords = [Int32Array.from({ length }, (_, e) => e)]
    const [r] = applyMap({ map: [add(mul(div(i!, int(7)), int(7)), mod(i!, int(7)))], inputs: ['i'] }, coords)
    expect(r).toEqual(coords[0])
  })

  it('names the coordinate where a result leaves the axis, the first one too', () => {
    const go = (e: Expr, ...at: number[]) =>
      applyMap({ map: [e], inputs: ['i'], outputs: [c('io', 2)] }, [Int32Array.from(at)])
    const half = div(i!, int(2))
    expect(() => go(half, 0, 3, 4)).toThrow('format/map-range: at (i) = (4) the coordinate on io is 2')
    expect(() => go(half, 5, 0)).toThrow('format/map-range: at (i) = (5) the coordinate on io is 2')
    expect(() => go(i!, 2, 0)).toThrow('format/map-range: at (i) = (2) the coordinate on io is 2')
    expect([go(half, 0, 3), go(i!, 0, 1)].map(([r]) => [...r!])).toEqual([
      [0, 1],
      [0, 1],
    ])
  })

  it('gives the own array of a coordinate that is one as it is', () => {
    const at = Int32Array.of(0, 1)
    expect(applyMap({ map: [i!], inputs: ['i'], outputs: [c('io', 2)] }, [at])[0]).toBe(at)
  })

  it('refuses what is no integer arithmetic, and unknown names', () => {
    const at = [Int32Array.of(0)]
    expect(() => applyMap({ map: [call('exp', [i!])], inputs: ['i'] }, at)).toThrow('format/map-expression')
    expect(() => applyMap({ map: [add(i!, variable('q'))], inputs: ['i'] }, at)).toThrow(
      'format/unknown-name',
    )
  })
})

describe('results', () => {
  it('that 32 bits do not hold are refused as they are, whatever the extent', () => {
    const most = 2 ** 31 - 1
    const columns = [Int32Array.of(0, most), Int32Array.of(0, most)]
    const outputs = [{ name: 'd', extent: 2 * most + 1 }]
    expect(() =>
      applyMap({ map: [add(i!, j!)], inputs: ['i', 'j'], sizes: new Map(), outputs }, columns),
    ).toThrow(`format/map-range: at (i, j) = (${most}, ${most}) the coordinate on d is ${2 * most}`)
  })
})

describe('intermediate results', () => {
  // The results fit, what they are made of does not: kernels would wrap.
  const map = [div(add(mul(i!, n!), j!), n!)]
  const columns = [Int32Array.of(3, 99_999), Int32Array.of(4, 5)]
  const input = { map, inputs: ['i', 'j'], sizes: new Map([['n', 100_000]]) }

  it('that 32 bits do not hold are refused where asked for', () => {
    expect(applyMap(input, columns)[0]).toEqual(columns[0])
    expect(() => applyMap({ ...input, strict: true }, columns)).toThrow(
      'format/map-overflow: at (i, j) = (99999, 5)',
    )
  })

  it('are asked about where inputs may become as large, and not where they cannot', () => {
    for (const [n, refused] of [
      [100_000, true],
      [6, false],
    ] as const) {
      const fits = neverOverflows({ ...input, extents: [n, 6] }, columns)
      expect(fits).toBe(!refused)
    }
  })

  it('count in comparisons too', () => {
    expect(() => firstDifference(input, columns, [columns[0]!])).toThrow('format/map-overflow')
    const few = columns.map((c) => c.subarray(0, 1))
    expect(firstDifference(input, few, [few[0]!])).toBeNull()
    expect(firstDifference(input, few, [few[1]!])).toEqual({ entry: 0, found: [3] })
  })
})

test('what occurs in several places is computed once', () => {
  let e = mul(i!, i!)
  for (let k = 0; k < 10; k++) e = add(e, e)
  const { steps } = compile({ exprs: [e], inputs: ['i'] }, [Int32Array.of(1)])
  expect(new Set(steps.map((x) => keyOf(x.expr))).size).toBe(steps.length)
})
