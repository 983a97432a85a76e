import fc from 'fast-check'
import { expect, it } from 'vitest'
import { rankFrom } from '../../src/analysis/dependence/query-dependence.ts'
import { div, type Expr, int, mod, variable } from '../../src/ir/expressions/expr.ts'
import type { Query } from '../../src/ir/formats/queries.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs } from '../support/cases.ts'

type Entry = ReadonlyMap<string, number>

/** Places of a / 2, which is at most 2, in some sort, and of those in another. */
const PLACES: readonly Query[] = [
  { name: 'p', kind: 'place', sort: 'first', of: div(variable('a'), int(2)) },
  { name: 'pp', kind: 'place', sort: 'second', of: variable('p') },
]
const POOL: readonly Expr[] = [
  variable('p'),
  variable('pp'),
  variable('a'),
  variable('b'),
  div(variable('a'), int(2)),
  mod(variable('b'), int(3)),
]
const some = fc.subarray([...POOL])
const order = fc.shuffledSubarray([0, 1, 2], { minLength: 3 })
const entries = fc.array(fc.tuple(fc.nat(5), fc.nat(5), fc.integer({ min: -1, max: 3 })), { maxLength: 30 })

const tuple = (exprs: readonly Expr[], at: Entry): number[] => exprs.map((e) => evaluate(e, at))
const compare = (x: readonly number[], y: readonly number[]): number =>
  x.reduce((order, v, k) => order || v - y[k]!, 0)

/** By definition: the different smaller tuples among those with the same `by`. */
function ranks(of: readonly Expr[], by: readonly Expr[], all: readonly Entry[]): number[] {
  return all.map((at) => {
    const own = tuple(of, at)
    const group = all.filter((x) => compare(tuple(by, x), tuple(by, at)) === 0).map((x) => tuple(of, x))
    return new Set(group.filter((x) => compare(x, own) < 0).map(String)).size
  })
}

/** What is asked of a rank that is known: by its groups, shares of it, and more or fewer others. */
const asked = fc.record({
  of: fc.subarray([...POOL], { minLength: 1 }),
  by: some,
  share: fc.constantFrom(null, int(0), int(1), int(2), int(3), variable('size'), variable('c')),
  twice: fc.constantFrom(false, false, true),
  other: fc.constantFrom(null, null, ...POOL),
  without: fc.constantFrom(null, null, 0),
  other_of: fc.constantFrom(null, null, ...POOL),
  size: fc.integer({ min: 1, max: 4 }),
})

it('gives the ranks of groups and of equal chunks, and nothing else', () => {
  let [answered, shares] = [0, 0]
  fc.assert(
    fc.property(entries, asked, order, order, (list, q, first, second) => {
      const known: Query = { name: 'rank_1', kind: 'rank', of: q.of, by: q.by }
      const plain = list.map(([a, b, c]) => {
        const p = first[a >> 1]!
        return new Map(Object.entries({ a, b, c, p, pp: second[p]!, size: q.size }))
      })
      const own = ranks(q.of, q.by, plain)
      const all = plain.map((at, e) => at.set('rank_1', own[e]!))
      const share = q.share ? [div(variable('rank_1'), q.share)] : []
      const more = q.twice ? [div(variable('rank_1'), int(2))] : []
      const by = [...share, ...q.by.filter((_, k) => k !== q.without), ...more, ...(q.other ? [q.other] : [])]
      const of = q.other_of ? [...q.of.slice(1), q.other_of] : q.of
      const isSize = (e: Expr): boolean => e.kind !== 'var' || e.name === 'size'
      const positive = (e: Expr): boolean => isSize(e) && evaluate(e, new Map([['size', q.size]])) >= 1
      const found = rankFrom(of, by, [...PLACES, known], positive)
      if (!found) return
      answered++
      if (found.kind === 'binary') shares++
      expect(all.map((at) => evaluate(found, at))).toEqual(ranks(of, by, all))
    }),
    { numRuns: runs(400) },
  )
  if (runs(400) >= 400) expect(answered).toBeGreaterThan(shares)
  expect(shares).toBeGreaterThan(0)
})

it('reuses a rank that is requested again, in any order of groups, and in chunks', () => {
  const [i, j] = [variable('i'), variable('j')]
  const known: Query = { name: 'r', kind: 'rank', of: [j], by: [div(i, int(4)), i] }
  const groups = [i, div(i, int(4))]
  const yes = (): boolean => true
  expect(rankFrom([j], groups, [known], yes)).toEqual(variable('r'))
  expect(rankFrom([j], [div(variable('r'), int(8)), ...groups], [known], yes)).toEqual(
    mod(variable('r'), int(8)),
  )
  const place: Query = { name: 'p', kind: 'place', sort: 's', of: div(i, int(4)) }
  expect(rankFrom([j], [i, variable('p')], [place, known], yes)).toEqual(variable('r'))
  expect(rankFrom([j], [i, variable('p')], [known], yes)).toBeNull()
  expect(rankFrom([j], [i], [known], yes)).toBeNull()
  expect(rankFrom([i], groups, [known], yes)).toBeNull()
  expect(rankFrom([j], [div(j, int(8)), ...groups], [known], yes)).toBeNull()
  expect(rankFrom([j], [div(variable('r'), int(8)), ...groups], [known], () => false)).toBeNull()
})
