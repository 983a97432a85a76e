import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyMap } from '../../src/formats/coordmap.ts'
import { checkMap } from '../../src/formats/mapcheck.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import {
  add,
  binary,
  call,
  div,
  type Expr,
  int,
  lt,
  max,
  min,
  mod,
  mul,
  neg,
  select,
  sub,
  variable,
} from '../../src/ir/expr.ts'

const [i, j, n, io, jo, ii, ji] = ['i', 'j', 'n', 'io', 'jo', 'ii', 'ji'].map((v) => variable(v))
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
      { numRuns: 500 },
    )
  })

  it('handles more coordinates than a chunk holds', () => {
    const length = 5000
    const coords = [Int32Array.from({ length }, (_, e) => e)]
    const [r] = applyMap({ map: [add(mul(div(i!, int(7)), int(7)), mod(i!, int(7)))], inputs: ['i'] }, coords)
    expect(r).toEqual(coords[0])
  })

  it('names the coordinate where a result leaves the axis', () => {
    const go = () =>
      applyMap({ map: [div(i!, int(2))], inputs: ['i'], outputs: [c('io', 2)] }, [Int32Array.of(0, 3, 4)])
    expect(go).toThrow('format/map-range: at (i) = (4) the coordinate on io is 2')
  })

  it('refuses what is no integer arithmetic, and unknown names', () => {
    const at = [Int32Array.of(0)]
    expect(() => applyMap({ map: [call('exp', [i!])], inputs: ['i'] }, at)).toThrow('format/map-expression')
    expect(() => applyMap({ map: [add(i!, variable('q'))], inputs: ['i'] }, at)).toThrow(
      'format/unknown-name',
    )
  })
})

describe('checkMap', () => {
  const blocks = (b: number, m: number, w: number) => ({
    map: [div(i!, int(b)), div(j!, int(b)), mod(i!, int(b)), mod(j!, int(b))],
    inverse: [add(mul(io!, int(b)), ii!), add(mul(jo!, int(b)), ji!)],
    from: [c('i', m), c('j', w)],
    to: [c('io', Math.ceil(m / b)), c('jo', Math.ceil(w / b)), c('ii', b), c('ji', b)],
  })

  it('accepts blocks, skews and transpositions, whole or sampled', () => {
    expect(checkMap(blocks(3, 10, 8))).toEqual({ tried: 80, exhaustive: true })
    expect(checkMap(blocks(16, 1_000_003, 70_001)).exhaustive).toBe(false)
    expect(checkMap(blocks(4, 0, 9))).toEqual({ tried: 0, exhaustive: true })
    checkMap({
      map: [j!, i!],
      inverse: [variable('b'), variable('a')],
      from: [c('i', 4), c('j', 5)],
      to: [c('a', 5), c('b', 4)],
    })
    checkMap({
      map: [add(i!, j!), j!],
      inverse: [sub(variable('d'), variable('k')), variable('k')],
      from: [c('i', 4), c('j', 5)],
      to: [c('d', 8), c('k', 5)],
    })
  })

  it('finds a wrong inverse, with a coordinate', () => {
    const wrong = { ...blocks(3, 10, 8), inverse: [add(mul(io!, int(3)), ji!), add(mul(jo!, int(3)), ii!)] }
    expect(() => checkMap(wrong)).toThrow(
      'format/not-inverse: the inverse does not undo the map: (i, j) = (0, 1) goes to (io, jo, ii, ji) = (0, 0, 0, 1), and that back to (1, 0)',
    )
  })

  it('finds maps that merge coordinates', () => {
    const merging = {
      map: [div(i!, int(2))],
      inverse: [mul(io!, int(2))],
      from: [c('i', 6)],
      to: [c('io', 3)],
    }
    expect(() => checkMap(merging)).toThrow('format/not-inverse')
  })

  it('finds results beyond an extent at the corner of a large box', () => {
    const b = blocks(16, 1_000_001, 70_001)
    const short = { ...b, to: [c('io', 62_500), ...b.to.slice(1)] }
    expect(() => checkMap(short)).toThrow('format/map-range: at (i, j) = (1000000, ')
  })

  it('finds in the data what a sample misses', () => {
    // Wrong for one row of a million.
    const odd = select(lt(sub(max(i!, int(777_777)), min(i!, int(777_777))), int(1)), int(0), i!)
    const one = {
      map: [odd, j!],
      inverse: [io!, jo!],
      from: [c('i', 1e6), c('j', 1e6)],
      to: [c('io', 1e6), c('jo', 1e6)],
    }
    expect(checkMap(one).exhaustive).toBe(false)
    expect(() => checkMap({ ...one, data: [Int32Array.of(5, 777_777), Int32Array.of(1, 2)] })).toThrow(
      '(i, j) = (777777, 2)',
    )
  })

  it('finds intermediate results that 32 bits do not hold', () => {
    const linear = {
      map: [div(add(mul(i!, n!), j!), n!), j!],
      inverse: [io!, jo!],
      from: [c('i', 100_000), c('j', 100_000)],
      to: [c('io', 100_000), c('jo', 100_000)],
      sizes: new Map([['n', 100_000]]),
    }
    expect(() => checkMap(linear)).toThrow('format/map-overflow')
  })

  it('wants one component for each axis', () => {
    expect(() => checkMap({ ...blocks(3, 10, 8), inverse: [io!] })).toThrow(
      'format/components: the inverse has 1 components for 2 axes',
    )
  })
})
