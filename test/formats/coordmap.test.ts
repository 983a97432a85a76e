import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { runSync } from '../../src/ast/work.ts'
import { Frame } from '../../src/columns/column-engine.ts'
import { applyMap } from '../../src/columns/coordmap.ts'
import { compile } from '../../src/columns/expression-program.ts'
import {
  add,
  binary,
  call,
  div,
  type Expr,
  int,
  load,
  mod,
  mul,
  neg,
  select,
  variable,
} from '../../src/ir/expressions/expr.ts'
import { keyOf } from '../../src/ir/expressions/structural-equality.ts'
import type { TypedArray } from '../../src/ir/values/arrays.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
import { runs } from '../support/cases.ts'
import { mapped } from '../support/host-frame.ts'

const [i, j, n] = ['i', 'j', 'n'].map((v) => variable(v))

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

describe('maps on the host', () => {
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
          const apply = () => mapped(map, { i: coords[0]!, j: coords[1]! }, new Map([['n', size]]))
          if (wide) expect(apply).toThrow('format/map-range')
          else expect(apply().map((r) => [...r])).toEqual(expected)
        },
      ),
      { numRuns: runs(250) },
    )
  })

  it('adds up comparisons of all kinds', () => {
    const flag = (op: 'gt' | 'lt' | 'ge', bound: Expr): Expr => select(binary(op, i!, bound), int(1), int(0))
    const at = Int32Array.of(0, 2, 3, 4, 9)
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
      expect([...mapped([terms.reduce(add)], { i: at }, new Map([['n', 3]]))[0]!]).toEqual(wanted)
  })

  it('handles more coordinates than a chunk holds', () => {
    const length = 5000
    const coords = Int32Array.from({ length }, (_, e) => e)
    const [r] = mapped([add(mul(div(i!, int(7)), int(7)), mod(i!, int(7)))], { i: coords })
    expect(r).toEqual(coords)
  })

  it('reads the fill beyond a table, in fused maps too', () => {
    const table = new Map([['t', { values: Int32Array.of(5, 6), fill: 9 }]])
    const at = { i: Int32Array.of(-1, 0, 1, 2), j: Int32Array.of(1, 1, 1, 1) }
    const t = load('t', [i!], 'i32')
    expect(mapped([t, add(t, j!), add(mul(t, int(2)), j!)], at, new Map(), table).map((r) => [...r])).toEqual(
      [
        [9, 5, 6, 9],
        [10, 6, 7, 10],
        [19, 11, 13, 19],
      ],
    )
  })

  it('rejects non-integer arithmetic and unknown names', () => {
    const at = { i: Int32Array.of(0) }
    expect(() => mapped([call('exp', [i!])], at)).toThrow('format/map-expression')
    expect(() => mapped([add(i!, variable('q'))], at)).toThrow('format/unknown-name')
  })
})

describe('results', () => {
  it('beyond 32 bits are rejected with their value', () => {
    const most = 2 ** 31 - 1
    const at = { i: Int32Array.of(0, most), j: Int32Array.of(0, most) }
    const place = `format/map-range: at (i, j) = (${most}, ${most}) a part of the map is`
    expect(() => mapped([add(i!, j!)], at)).toThrow(`${place} ${2 * most}`)
    expect(() => mapped([add(mul(i!, int(2)), j!)], at)).toThrow(`${place} ${3 * most}`)
  })
})

describe('intermediate results', () => {
  // The results fit, what they are made of does not: kernels would wrap.
  const e = div(add(mul(i!, n!), j!), n!)
  const columns = [Int32Array.of(3, 99_999), Int32Array.of(4, 5)]
  const frameOf = (size: number, extent: number): Frame<TypedArray> => {
    const frame = new Frame<TypedArray>(HOST, 2, new Map([['n', size]]))
    for (const [k, name] of ['i', 'j'].entries()) {
      frame.set(name, columns[k]!, false)
      frame.bounds.set(name, [0, extent - 1])
    }
    return frame
  }

  it('beyond 32 bits are rejected on samples, and in conditions', () => {
    const frame = frameOf(100_000, 100_000)
    HOST.compute(frame, 'result', e)
    expect(frame.column('result')).toEqual(columns[0])
    const place = 'format/map-overflow: at (i) = (99999)'
    const sizes = new Int32Array(2).fill(100_000)
    expect(() => applyMap({ map: [e], inputs: ['i', 'j', 'n'] }, [...columns, sizes])).toThrow(
      'format/map-overflow: at (i, j, n) = (99999, 5, 100000)',
    )
    expect(() => runSync(HOST.findFirst(frame, [binary('ne', e, i!)]))).toThrow(place)
  })

  it('are rejected exactly beyond the limits of 32 bits', () => {
    const near = fc.tuple(fc.constantFrom(-(2 ** 31), 2 ** 31 - 1), fc.integer({ min: -3, max: 3 }))
    fc.assert(
      fc.property(near, fc.nat(9), ([end, off], at) => {
        const sum = end + off
        // Both operands fit, and so does the result of the whole: the sum between them may not.
        const half = Math.trunc(sum / 2)
        const whole = div(add(i!, int(sum - half)), int(2))
        const column = new Int32Array(at + 1).fill(0)
        column[at] = half
        const frame = new Frame<TypedArray>(HOST, at + 1, new Map())
        frame.set('i', column, false)
        const fits = sum === (sum | 0)
        const asked = [
          () => applyMap({ map: [whole], inputs: ['i'] }, [column]),
          () => runSync(HOST.findFirst(frame, [binary('lt', whole, int(-(2 ** 31)))])),
        ]
        for (const ask of asked)
          if (fits) expect(ask).not.toThrow()
          else expect(ask).toThrow(`format/map-overflow: at (i) = (${half}) an intermediate value is ${sum}`)
      }),
      { numRuns: runs(60) },
    )
  })

  it('are checked if inputs may become that large, and only then', () => {
    expect(HOST.fits(frameOf(100_000, 100_000), e)).toBe(false)
    expect(HOST.fits(frameOf(6, 6), e)).toBe(true)
  })

  it('are checked if elements of a table, or values beyond it, may be that large', () => {
    const loads = (fill: number, ...table: number[]): boolean => {
      const frame = frameOf(100_000, 6)
      frame.tables.set('t', Int32Array.from(table))
      frame.fills.set('t', fill)
      return HOST.fits(frame, div(add(mul(load('t', [i!], 'i32'), n!), j!), n!))
    }
    expect([loads(6, 5, 3), loads(6, -5, 3)]).toEqual([true, true])
    expect([loads(6, 5, 99_999), loads(6, -99_999, 3), loads(99_999, 5, 3)]).toEqual([false, false, false])
  })
})

test('common subexpressions are computed once', () => {
  let e = mul(i!, i!)
  for (let k = 0; k < 10; k++) e = add(e, e)
  const { steps } = compile([e], {
    column: (name) => (name === 'i' ? Int32Array.of(1) : undefined),
    size: () => undefined,
    table: () => undefined,
    range: () => undefined,
    all: () => ({ variables: ['i'], tables: [] }),
  })
  expect(new Set(steps.map((x) => keyOf(x.expr))).size).toBe(steps.length)
})
