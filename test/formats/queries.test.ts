import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runSync } from '../../src/ast/work.ts'
import { add, div, type Expr, int, mod, mul, neg, sub, variable } from '../../src/ir/expressions/expr.ts'
import type { Sort } from '../../src/ir/formats/format.ts'
import type { Query } from '../../src/ir/formats/queries.ts'
import { evaluateQueries } from '../../src/storage/columns/attribute-queries.ts'
import { evaluateSort } from '../../src/storage/columns/sort-permutations.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'
import { hostScope } from '../support/host-frame.ts'
import { refusal } from '../support/refusal.ts'
import { givenFor, matrices, matrix } from './user-formats.ts'

const [i, j] = ['row', 'col'].map((name) => variable(name)) as [Expr, Expr]
/** Keys as text, as numbers of (i, j), and as expressions. */
const KEYS: readonly (readonly [(i: number, j: number) => readonly number[], readonly Expr[]])[] = [
  [() => [], []],
  [(x) => [x], [i]],
  [(_, y) => [y], [j]],
  [(x, y) => [x, y], [i, j]],
  [(x) => [Math.floor(x / 3)], [div(i, int(3))]],
  [(x, y) => [Math.floor(x / 4), Math.floor(y / 4)], [div(i, int(4)), div(j, int(4))]],
  [(x, y) => [y - x], [sub(j, i)]],
  [(x) => [x - 1], [sub(i, int(1))]],
  [(_, y) => [y - 1], [sub(j, int(1))]],
  [(x, y) => [x % 2, y], [mod(i, int(2)), j]],
]
const key = fc.constantFrom(...KEYS)

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((x, k) => x - b[k]!).find((d) => d !== 0) ?? 0

/** Entries as tuples; CSR order or as drawn. */
const scopes = fc.tuple(matrices, fc.boolean()).map(([t, sorted]) => {
  const rows = Array.from(t.values!, (v, e) => [t.coords[0]![e]!, t.coords[1]![e]!, v])
  if (!sorted) return t
  rows.sort(compare)
  return matrix(
    t.shape,
    rows.filter((r, k) => k === 0 || compare(r.slice(0, 2), rows[k - 1]!.slice(0, 2)) !== 0),
  )
})

const DIMS = ['row', 'col']

function askAll(
  t: CoordTensor,
  queries: readonly Query[],
  more: Parameters<typeof givenFor>[1] = {},
): (name: string) => number[] {
  const { frame, scope } = hostScope(DIMS, t, givenFor(t.shape, more))
  runSync(evaluateQueries(frame, queries, scope))
  return (name) => [...frame.column(name)!]
}

const ask = (t: CoordTensor, query: Query, more: Parameters<typeof givenFor>[1] = {}): number[] =>
  askAll(t, [query], more)(query.name)

function sorted(t: CoordTensor, sort: Sort) {
  const { frame, scope } = hostScope(DIMS, t, givenFor(t.shape))
  return runSync(evaluateSort(frame, sort, scope))
}

const tuples = (t: CoordTensor): [number, number][] =>
  Array.from(t.coords[0]!, (x, e) => [x, t.coords[1]![e]!])

describe('queries agree with their definition', () => {
  it('count: different tuples among those with the same by', () => {
    fc.assert(
      fc.property(scopes, key, key, (t, [of, ofExprs], [by, byExprs]) => {
        const all = tuples(t)
        const expected = all.map(
          (x) =>
            new Set(all.filter((y) => compare(by(...x), by(...y)) === 0).map((y) => of(...y).join())).size,
        )
        expect(ask(t, { name: 'q', kind: 'count', of: ofExprs, by: byExprs })).toEqual(expected)
      }),
      { numRuns: runs(200) },
    )
  })

  it('rank: smaller tuples among those with the same by', () => {
    fc.assert(
      fc.property(scopes, key, key, (t, [of, ofExprs], [by, byExprs]) => {
        const all = tuples(t)
        const expected = all.map(
          (x) =>
            new Set(
              all
                .filter((y) => compare(by(...x), by(...y)) === 0 && compare(of(...y), of(...x)) < 0)
                .map((y) => of(...y).join()),
            ).size,
        )
        expect(ask(t, { name: 'q', kind: 'rank', of: ofExprs, by: byExprs })).toEqual(expected)
      }),
      { numRuns: runs(200) },
    )
  })

  it('rank: the first group and the first member may be -1', () => {
    const t = matrix(
      [3, 3],
      [
        [0, 0, 1],
        [0, 1, 1],
        [1, 0, 1],
      ],
    )
    const [of, by] = [[sub(j, int(1))], [sub(i, int(1))]]
    expect(ask(t, { name: 'q', kind: 'rank', of, by })).toEqual([0, 1, 0])
  })

  it('least: of an expression among those with the same by; possibly negative expressions are rejected', () => {
    const e = mod(add(mul(j, int(7)), i), int(5))
    fc.assert(
      fc.property(scopes, key, (t, [by, byExprs]) => {
        const all = tuples(t)
        const expected = all.map((x) =>
          Math.min(...all.flatMap((y) => (compare(by(...x), by(...y)) === 0 ? [(y[1] * 7 + y[0]) % 5] : []))),
        )
        expect(ask(t, { name: 'q', kind: 'least', of: e, by: byExprs })).toEqual(expected)
      }),
      { numRuns: runs(200) },
    )
    const t = {
      kind: 'coords',
      shape: [2, 3],
      coords: [Int32Array.of(0), Int32Array.of(2)],
      values: null,
    } as const
    expect(() => ask({ ...t, dtype: 'f32' }, { name: 'q', kind: 'least', of: sub(i, j), by: [] })).toThrow(
      'format/least-range',
    )
  })

  it('value: sums of equal coordinates; largest: places by decreasing magnitude, ties by coordinate', () => {
    fc.assert(
      fc.property(
        scopes,
        key,
        fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
        (t, [by, exprs], s) => {
          const signed = {
            ...t,
            values: Float64Array.from(t.values!, (v, e) => (s[e] ? -v : v)),
          }
          const all = tuples(t)
          const sums = new Map<string, number>()
          for (const [e, x] of all.entries())
            sums.set(x.join(), (sums.get(x.join()) ?? 0) + signed.values[e]!)
          const value = (x: readonly number[]): number => sums.get(x.join())!
          expect(ask(signed, { name: 'q', kind: 'value' })).toEqual(all.map(value))
          const expected = all.map((x) => {
            const before = all.filter(
              (y) =>
                compare(by(...x), by(...y)) === 0 &&
                (Math.abs(value(y)) > Math.abs(value(x)) ||
                  (Math.abs(value(y)) === Math.abs(value(x)) && compare(y, x) < 0)),
            )
            return new Set(before.map((y) => y.join())).size
          })
          expect(ask(signed, { name: 'q', kind: 'largest', by: exprs })).toEqual(expected)
        },
      ),
      { numRuns: runs(150) },
    )
  })

  it('held: membership in a set; find: segments', () => {
    fc.assert(
      fc.property(scopes, fc.array(fc.tuple(fc.nat(19), fc.nat(19)), { maxLength: 30 }), (t, members) => {
        const sets = new Map([['s', [0, 1].map((k) => Int32Array.from(members, (x) => x[k]!))]])
        const all = tuples(t)
        expect(ask(t, { name: 'q', kind: 'held', set: 's' }, { sets })).toEqual(
          all.map((x) => Number(members.some((y) => compare(x, y) === 0))),
        )
        const list = Int32Array.of(0, 2, 2, 9, 20)
        const expected = all.map(([, y]) => (y < 2 ? 0 : y < 9 ? 2 : 3))
        expect(
          ask(t, { name: 'q', kind: 'find', list: 'l', of: j }, { lists: new Map([['l', list]]) }),
        ).toEqual(expected)
      }),
      { numRuns: runs(100) },
    )
  })

  it('a pattern counts 1 everywhere, and NaN is larger than all', () => {
    const t = matrix(
      [2, 2],
      [
        [0, 0, 5],
        [1, 1, Number.NaN],
        [0, 1, -Infinity],
      ],
    )
    expect(ask({ ...t, values: null }, { name: 'q', kind: 'value' })).toEqual([1, 1, 1])
    expect(ask(t, { name: 'q', kind: 'largest', by: [] })).toEqual([2, 0, 1])
  })

  it('later queries use earlier ones', () => {
    const t = matrix(
      [3, 4],
      [
        [0, 0, 1],
        [0, 3, 1],
        [2, 1, 1],
      ],
    )
    const queries: Query[] = [
      { name: 'length', kind: 'count', of: [j], by: [i] },
      { name: 'same', kind: 'count', of: [i], by: [variable('length')] },
    ]
    expect(askAll(t, queries)('same')).toEqual([1, 1, 1])
  })
})

describe('many entries', () => {
  /** Rows of a fixed length with skewed columns, in order. */
  const rows = 400
  const t = matrix(
    [rows, 5000],
    Array.from({ length: rows * 60 }, (_, e) => {
      const x = Math.floor(e / 60)
      return [x, (e % 60) * 83 + ((x * 7919 + e * 31) % 83), 1]
    }),
  )

  it.each([
    ['in strips of rows', [div(i, int(8))], (x: number) => [Math.floor(x / 8)]],
    [
      'in blocks',
      [div(i, int(8)), div(j, int(16))],
      (x: number, y: number) => [Math.floor(x / 8), Math.floor(y / 16)],
    ],
    ['by column', [j], (_: number, y: number) => [y]],
  ] as const)('counts and ranks %s', (_, by, of) => {
    const groups = new Map<string, Set<number>>()
    for (const x of tuples(t)) {
      const group = of(...x).join()
      groups.set(group, (groups.get(group) ?? new Set()).add(x[1]))
    }
    const sorted = new Map([...groups].map(([g, s]) => [g, [...s].sort((a, b) => a - b)]))
    const places = new Map([...sorted].map(([g, s]) => [g, new Map(s.map((y, k) => [y, k]))]))
    const all = tuples(t)
    expect(ask(t, { name: 'q', kind: 'rank', of: [j], by })).toEqual(
      all.map((x) => places.get(of(...x).join())!.get(x[1])!),
    )
    expect(ask(t, { name: 'q', kind: 'count', of: [j], by })).toEqual(
      all.map((x) => groups.get(of(...x).join())!.size),
    )
  })
})

describe('sorts', () => {
  const count: Query = { name: 'n', kind: 'count', of: [j], by: [i] }

  it('order all coordinates, including those without entries', () => {
    fc.assert(
      fc.property(scopes, fc.constantFrom(1, 3, 8, null), fc.boolean(), (t, w, strips) => {
        const [m] = t.shape as [number]
        const by = strips ? [div(i, int(2))] : [i]
        const sort = {
          place: 'place',
          at: 'at',
          dim: 'row',
          of: i,
          extent: int(m),
          key: neg(variable('n')),
          queries: [{ ...count, by }],
          within: w === null ? null : int(w),
        }
        const { place, at } = sorted(t, sort)
        const group = (x: number): number => (strips ? Math.floor(x / 2) : x)
        const length = (x: number): number =>
          new Set(
            tuples(t)
              .filter(([r]) => group(r) === group(x))
              .map(([, c]) => c),
          ).size
        const window = (x: number): number => (w === null ? 0 : Math.floor(x / w))
        const expected = Array.from({ length: m }, (_, x) => x).sort(
          (a, b) => window(a) - window(b) || length(b) - length(a) || a - b,
        )
        expect([...at]).toEqual(expected)
        expect(expected.map((x) => place[x])).toEqual(expected.map((_, p) => p))
      }),
      { numRuns: runs(100) },
    )
  })

  it('reject empty windows, and properties of single entries', () => {
    const named = { place: 'p', at: 'a', dim: 'row', of: i, extent: int(1) }
    const sort = { ...named, key: variable('n'), queries: [count], within: int(0) }
    const one = matrix([1, 1], [[0, 0, 1]])
    expect(refusal(() => sorted(one, sort)).code).toBe('format/sort-window')
    const rank: Query = { name: 'n', kind: 'rank', of: [j], by: [i] }
    expect(refusal(() => sorted(one, { ...sort, within: null, queries: [rank] })).code).toBe(
      'format/sort-query',
    )
  })
})
