import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  factsOf,
  proveBelow,
  proveCover,
  proveDisjoint,
  proveInverse,
  proveRange,
} from '../../src/formats/proof/prove.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import {
  add,
  all,
  binary,
  cast,
  ceildiv,
  constant,
  div,
  type Expr,
  int,
  load,
  max,
  min,
  mod,
  mul,
  not,
  select,
  sub,
  variable,
} from '../../src/ir/expressions/expr.ts'
import type { FormatInstance, Sort } from '../../src/ir/formats/format.ts'
import { segmentsOf } from '../../src/ir/formats/format-tables.ts'
import type { Query } from '../../src/ir/formats/queries.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs, scaled } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { bijection, type CoordinateMap, holdsAt, mutated, points } from './bijections.ts'

const v = variable
const dense = (name: string, extent: Expr): StoredAxis => ({
  kind: 'dense_fixed',
  name,
  parent: null,
  extent,
})
const over: readonly StoredAxis[] = [dense('i', v('m')), dense('j', v('n'))]

interface Map2 extends CoordinateMap {
  readonly queries?: readonly Query[]
  readonly sorts?: readonly Sort[]
  readonly tables?: FormatInstance['tables']
  readonly measured?: FormatInstance['measured']
}

const part = (m: Map2): FormatInstance => {
  const order = m.map.map((_, k) => `x${k}`)
  return {
    text: 'test',
    constants: new Map(),
    axes: order.map((name, k) => dense(name, m.extents[k]!)),
    order,
    names: new Map(order.map((n) => [n, n])),
    arrayNames: new Map(),
    sorts: m.sorts ?? [],
    lists: [],
    queries: m.queries ?? [],
    map: m.map,
    inverse: m.inverse,
    where: null,
    tables: m.tables ?? [],
    claims: [],
    measured: m.measured ?? [],
  }
}

const proofs = (m: Map2): readonly [boolean, boolean] => {
  const p = part(m)
  const facts = factsOf(over, p.queries, p)
  return [proveInverse(p, over, facts), proveRange(p, facts)]
}

const blocks = (b: number): Map2 => ({
  map: [div(v('i'), int(b)), div(v('j'), int(b)), mod(v('i'), int(b)), mod(v('j'), int(b))],
  inverse: [add(mul(v('x0'), int(b)), v('x2')), add(mul(v('x1'), int(b)), v('x3'))],
  extents: [ceildiv(v('m'), int(b)), ceildiv(v('n'), int(b)), int(b), int(b)],
})

describe('maps', () => {
  it('proves blocks, and rejects to prove them with a wrong block or extent', () => {
    expect(proofs(blocks(16))).toEqual([true, true])
    const wrong = { ...blocks(16), inverse: [...blocks(15).inverse] }
    expect(proofs(wrong)).toEqual([false, true])
    const short = [div(v('m'), int(16)), ...blocks(16).extents.slice(1)]
    expect(proofs({ ...blocks(16), extents: short })).toEqual([true, false])
  })

  it('proves diagonals: the other coordinate cancels', () => {
    const last = sub(v('m'), int(1))
    const diagonals: Map2 = {
      map: [add(sub(v('j'), v('i')), last), v('i')],
      inverse: [v('x1'), sub(add(v('x0'), v('x1')), last)],
      extents: [sub(add(v('m'), v('n')), int(1)), v('m')],
    }
    expect(proofs(diagonals)).toEqual([true, true])
    expect(proofs({ ...diagonals, extents: [sub(add(v('m'), v('n')), int(2)), v('m')] })).toEqual([
      true,
      false,
    ])
  })

  it('proves bits of a block, block by block, and blocks of blocks', () => {
    const e = add(mul(mod(v('i'), int(8)), int(8)), mod(v('j'), int(8)))
    const bits: Map2 = {
      map: [div(v('i'), int(8)), div(v('j'), int(8)), e],
      inverse: [
        add(mul(v('x0'), int(8)), div(v('x2'), int(8))),
        add(mul(v('x1'), int(8)), mod(v('x2'), int(8))),
      ],
      extents: [ceildiv(v('m'), int(8)), ceildiv(v('n'), int(8)), int(64)],
    }
    expect(proofs(bits)).toEqual([true, true])
    const nested: Map2 = {
      map: [div(v('i'), int(12)), div(mod(v('i'), int(12)), int(4)), mod(v('i'), int(4)), v('j')],
      inverse: [add(add(mul(v('x0'), int(12)), mul(v('x1'), int(4))), v('x2')), v('x3')],
      extents: [ceildiv(v('m'), int(12)), int(3), int(4), v('n')],
    }
    expect(proofs(nested)).toEqual([true, true])
    expect(proofs({ ...nested, map: [nested.map[0]!, nested.map[1]!, mod(v('i'), int(5)), v('j')] })[0]).toBe(
      false,
    )
  })

  it('proves permutations by a sort, and segments of a list', () => {
    const place: Query = { kind: 'place', name: 'at#0', sort: 'place', of: v('i') }
    const named = { place: 'place', at: 'row', dim: 'i', of: v('i'), extent: v('m') }
    const sort: Sort = { ...named, key: int(0), queries: [], within: null }
    const row = (e: Expr): Expr => load('row', [e], 'i32')
    const sliced: Map2 = {
      queries: [place],
      sorts: [sort],
      tables: [{ name: 'row', kind: 'sort', under: [], source: 'row', length: v('m'), fill: v('m') }],
      map: [div(v('at#0'), int(4)), mod(v('at#0'), int(4)), v('j')],
      inverse: [row(add(mul(v('x0'), int(4)), v('x1'))), v('x2')],
      extents: [ceildiv(v('m'), int(4)), int(4), v('n')],
    }
    expect(proofs(sliced)).toEqual([true, true])
    const off = row(add(add(mul(v('x0'), int(4)), v('x1')), int(1)))
    expect(proofs({ ...sliced, inverse: [off, v('x2')] })[0]).toBe(false)
    expect(proofs({ ...sliced, queries: [{ ...place, of: v('j') }] })[0]).toBe(false)

    const find: Query = { kind: 'find', name: 'k#0', list: 'rows', of: v('i') }
    const start = load('rows', [v('k#0')], 'i32')
    const cut: Map2 = {
      queries: [find],
      tables: [
        {
          name: 'rows',
          kind: 'list',
          source: 'rows',
          under: [],
          length: add(v(segmentsOf('rows')), int(1)),
          fill: v('m'),
        },
      ],
      map: [v('k#0'), sub(v('i'), start), v('j')],
      inverse: [add(load('rows', [v('x0')], 'i32'), v('x1')), v('x2')],
      extents: [v(segmentsOf('rows')), v('m'), v('n')],
    }
    expect(proofs(cut)).toEqual([true, true])
    expect(proofs({ ...cut, extents: [v(segmentsOf('rows')), sub(v('m'), int(1)), v('n')] })[1]).toBe(false)
    // A segment ends after what is found in it: by one at least, and maybe no more.
    const left = sub(load('rows', [add(v('k#0'), int(1))], 'i32'), v('i'))
    for (const [less, proved] of [
      [1, true],
      [2, false],
    ] as const)
      expect(proofs({ ...cut, map: [v('k#0'), sub(left, int(less)), v('j')] })[1], `${less}`).toBe(proved)
  })

  it('bounds ranks, and does not prove measured extents', () => {
    const rank: Query = { kind: 'rank', name: 'r#0', of: [v('j')], by: [v('i')] }
    const pieces: Map2 = {
      queries: [rank],
      map: [v('i'), div(v('r#0'), int(4)), v('j')],
      inverse: [v('x0'), v('x2')],
      extents: [v('m'), v('n'), v('n')],
    }
    expect(proofs(pieces)).toEqual([true, true])
    expect(proofs({ ...pieces, queries: [{ ...rank, of: [v('i'), v('j')] }] })).toEqual([true, false])
    const open = { ...pieces, extents: [v('m'), v('w'), v('n')], measured: [{ name: 'w' }] }
    expect(proofs(open)).toEqual([true, true])
  })

  it('skips a comparison that takes too long, and continues', () => {
    const next = add(v('i'), int(1))
    const sum = Array.from({ length: 12 }, (_, k) => min(next, int(k + 1))).reduce(add)
    expect(proveBelow(int(0), sum, over)).toBe(false)
    expect(proveBelow(min(int(0), sum), int(0), over)).toBe(true)
  })

  it('simplifies one-sided minima and maxima', () => {
    const clamped: Map2 = {
      map: [min(v('i'), sub(v('m'), int(1))), max(v('j'), int(0))],
      inverse: [v('x0'), v('x1')],
      extents: [v('m'), v('n')],
    }
    expect(proofs(clamped)).toEqual([true, true])
    expect(proofs({ ...clamped, map: [min(v('i'), int(3)), v('j')] })).toEqual([false, true])
  })
})

describe('verdicts against brute force', () => {
  const small = points(6)

  it('proves a family of bijections', () => {
    let ranges = 0
    fc.assert(
      fc.property(choiceNumbers(16), (numbers) => {
        const m = bijection(new Choices(numbers))
        expect(holdsAt(m, small)).toEqual([true, true])
        const [inverse, range] = proofs(m)
        expect(inverse).toBe(true)
        if (range) ranges++
      }),
      { numRuns: runs(150) },
    )
    expect(ranges).toBeGreaterThan(runs(150) * 0.6)
  })

  it('never proves a false statement', () => {
    let wrong = 0
    fc.assert(
      fc.property(choiceNumbers(40), (numbers) => {
        const c = new Choices(numbers)
        const m = mutated(bijection(c), c)
        const [inverse, range] = holdsAt(m, small)
        const [provesIt, inRange] = proofs(m)
        if (!inverse || !range) wrong++
        if (provesIt) expect(inverse).toBe(true)
        if (inRange) expect(range).toBe(true)
      }),
      { numRuns: runs(150) },
    )
    expect(wrong).toBeGreaterThan(scaled(20))
  })
})

describe('conditions', () => {
  const small = points(6)
  const facts = factsOf(over, [{ kind: 'count', name: 'c', of: [v('j')], by: [v('i')] }])
  const ge = (a: Expr, b: Expr): Expr => binary('ge', a, b)
  const lt = (a: Expr, b: Expr): Expr => binary('lt', a, b)

  it('proves complements, comparisons with constants, residues and bands', () => {
    const dense = ge(div(cast(v('c'), 'f64'), constant(256, 'f64')), constant(0.5, 'f64'))
    const sparse = lt(div(cast(v('c'), 'f64'), constant(256, 'f64')), constant(0.5, 'f64'))
    expect(proveDisjoint([dense, sparse], facts)).toBe(true)
    expect(proveCover([dense, sparse], facts)).toBe(true)
    expect(proveCover([dense, not(dense)], facts)).toBe(true)
    const lower = lt(div(cast(v('c'), 'f64'), constant(256, 'f64')), constant(0.4, 'f64'))
    expect(proveDisjoint([dense, lower], facts)).toBe(true)
    expect(proveCover([dense, lower], facts)).toBe(false)

    const [yes, no] = [constant(1, 'bool'), constant(0, 'bool')]
    expect(proveDisjoint([no, dense], facts)).toBe(true)
    expect(proveCover([yes], facts)).toBe(true)
    expect(proveDisjoint([yes, dense], facts) || proveCover([no], facts)).toBe(false)

    const odd = binary('eq', mod(v('j'), int(3)), int(1))
    const even = binary('eq', mod(v('j'), int(3)), int(2))
    const none = binary('eq', mod(v('j'), int(3)), int(0))
    expect(proveDisjoint([odd, even, none], facts)).toBe(true)
    expect(proveCover([odd, even, none], facts)).toBe(true)
    expect(proveCover([odd, even], facts)).toBe(false)

    const band = all([binary('le', sub(v('i'), v('j')), int(1)), binary('le', sub(v('j'), v('i')), int(1))])
    const outside = binary(
      'or',
      binary('gt', sub(v('i'), v('j')), int(1)),
      binary('gt', sub(v('j'), v('i')), int(1)),
    )
    expect(proveDisjoint([band, outside], facts)).toBe(true)
    expect(proveCover([band, outside], facts)).toBe(true)
    expect(proveDisjoint([band, ge(v('j'), v('i'))], facts)).toBe(false)
  })

  it('treats comparisons with NaN as false', () => {
    const value = v('value#0', 'f64')
    const small = lt(value, constant(1, 'f64'))
    const large = ge(value, constant(1, 'f64'))
    expect(proveDisjoint([small, large], facts)).toBe(true)
    expect(proveCover([small, large], facts)).toBe(false)
    expect(proveCover([small, not(small)], facts)).toBe(true)
    expect(proveDisjoint([not(small), large], facts)).toBe(false)
  })

  it('never proves a false statement', () => {
    const form = (c: Choices): Expr => {
      const base = c.pick([
        v('i'),
        v('j'),
        add(v('i'), v('j')),
        sub(v('j'), v('i')),
        v('m'),
        min(v('i'), v('j')),
      ])
      return c.pick([
        base,
        base,
        mod(base, int(c.between(2, 3))),
        div(base, int(2)),
        mul(base, int(2)),
        select(lt(base, int(1)), base, int(2)),
      ])
    }
    const literal = (c: Choices): Expr =>
      binary(c.pick(['lt', 'le', 'gt', 'ge', 'eq', 'ne'] as const), form(c), int(c.between(-1, 3)))
    const condition = (c: Choices, depth: number): Expr => {
      if (depth === 0 || c.chance(50)) return literal(c)
      const a = condition(c, depth - 1)
      return c.chance(30) ? not(a) : binary(c.pick(['and', 'or'] as const), a, condition(c, depth - 1))
    }
    let proved = 0
    fc.assert(
      fc.property(choiceNumbers(60), (numbers) => {
        const c = new Choices(numbers)
        const first = condition(c, 2)
        const conditions = [first, c.chance(40) ? not(first) : condition(c, 2), condition(c, 1)].slice(
          0,
          c.between(2, 3),
        )
        let disjoint = true
        let cover = true
        for (const at of small) {
          const n = conditions.filter((e) => evaluate(e, at) !== 0).length
          if (n > 1) disjoint = false
          if (n === 0) cover = false
        }
        if (proveDisjoint(conditions, facts)) expect([proved++, disjoint][1]).toBe(true)
        if (proveCover(conditions, facts)) expect([proved++, cover][1]).toBe(true)
      }),
      { numRuns: runs(150) },
    )
    expect(proved).toBeGreaterThan(scaled(20))
  })
})
