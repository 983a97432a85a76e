/** What lists cut: the extent that they end with is that of what is looked up in them, in maps, conditions and keys of sorts. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { coords, load, type SptFormat } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const KINDS = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const formatOf = async (text: string, name = 'own'): Promise<SptFormat> =>
  (await load(KINDS + text)).format(name)

/** `axes`: which of (i, j) is sorted. */
const sorted = (d: 'i' | 'j', key: string, lists: readonly string[]): string => {
  const o = d === 'i' ? 'j' : 'i'
  const params = lists.length > 0 ? `(${lists.map((l) => `${l}: list`).join(', ')})` : ''
  return `format own${params} over (i, j) {
  sort ${d} by ${key} -> (place, at)
  axis a = dense_fixed(${d})
  axis b = sparse_variable(a, ${o})
  map (i, j) -> (place[${d}], ${o})
  inverse (a, b) -> ${d === 'i' ? '(at[a], b)' : '(b, at[a])'}
}`
}

const pattern = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })).chain(([m, n]) => {
  const points = fc.uniqueArray(fc.integer({ min: 0, max: m * n - 1 }), { maxLength: m * n })
  const cuts = (extent: number) =>
    fc
      .array(fc.integer({ min: 0, max: extent }), { maxLength: 4 })
      .map((xs) => [0, ...xs.sort((a, b) => a - b), extent])
  return fc.record({
    shape: fc.constant([m, n] as const),
    points: points.map((ps) => ps.map((p) => [Math.floor(p / n), p % n] as const)),
    rows: cuts(m),
    cols: cuts(n),
  })
})
type Drawn = typeof pattern extends fc.Arbitrary<infer T> ? T : never

const tensorOf = ({ shape, points }: Drawn) =>
  coords(
    shape,
    [0, 1].map((k) => points.map((p) => p[k]!)),
  )

const find = (list: readonly number[], x: number): number => list.findLastIndex((b) => b <= x)
const distinct = (xs: readonly number[]): number => new Set(xs).size
const least = (xs: readonly number[]): number => (xs.length === 0 ? 0 : Math.min(...xs))

/** Keys of d, o being the other dimension: text, lists by what they cut, and the value for the coordinate x. */
interface At {
  readonly x: number
  /** What is stored in all, as (d, o). */
  readonly all: readonly (readonly [number, number])[]
  readonly ofD: readonly number[]
  readonly ofO: readonly number[]
}
const KEYS: readonly (readonly [string, readonly ('D' | 'O')[], (at: At) => number])[] = [
  ['find(D, d)', ['D'], ({ x, ofD }) => find(ofD, x)],
  [
    '-count(find(O, o) by d)',
    ['O'],
    ({ x, all, ofO }) => -distinct(all.flatMap(([d, o]) => (d === x ? find(ofO, o) : []))),
  ],
  [
    'least(find(O, o) by d)',
    ['O'],
    ({ x, all, ofO }) => least(all.flatMap(([d, o]) => (d === x ? find(ofO, o) : []))),
  ],
  [
    'count(o by find(D, d))',
    ['D'],
    ({ x, all, ofD }) => distinct(all.flatMap(([d, o]) => (find(ofD, d) === find(ofD, x) ? o : []))),
  ],
  [
    'least(count(d by o) by d) * 8 - count(find(O, o) by find(D, d))',
    ['D', 'O'],
    ({ x, all, ofD, ofO }) => {
      const count = (o: number): number => all.filter((p) => p[1] === o).length
      const own = least(all.flatMap(([d, o]) => (d === x ? count(o) : [])))
      return own * 8 - distinct(all.flatMap(([d, o]) => (find(ofD, d) === find(ofD, x) ? find(ofO, o) : [])))
    },
  ],
  [
    'least(count(o by d) by count(o by d))',
    [],
    ({ x, all }) => {
      const count = (c: number): number => all.filter((p) => p[0] === c).length
      return count(x)
    },
  ],
]

describe('lists in keys of sorts', () => {
  it.each(KEYS.map(([text]) => [text]))(
    '%s orders either dimension as a loop over elements does',
    async (text) => {
      const [, lists, value] = KEYS.find(([t]) => t === text)!
      for (const d of ['i', 'j'] as const) {
        const words = { D: 'mine', O: 'other', d, o: d === 'i' ? 'j' : 'i' }
        const key = text.replace(/\b[DOdo]\b/g, (w) => words[w as keyof typeof words])
        const format = await formatOf(
          sorted(
            d,
            key,
            lists.map((l) => words[l]),
          ),
        )
        fc.assert(
          fc.property(pattern, (drawn) => {
            const [ofD, ofO] = d === 'i' ? [drawn.rows, drawn.cols] : [drawn.cols, drawn.rows]
            const all = drawn.points.map(([i, j]) => (d === 'i' ? ([i, j] as const) : ([j, i] as const)))
            const data = Object.fromEntries(lists.map((l) => [words[l], l === 'D' ? ofD : ofO]))
            const extent = drawn.shape[d === 'i' ? 0 : 1]
            const keys = Array.from({ length: extent }, (_, x) => value({ x, all, ofD, ofO }))
            const order = keys.map((_, x) => x).sort((a, b) => keys[a]! - keys[b]! || a - b)
            const { parts } = format.convert(tensorOf(drawn), data)
            expect([...parts[0]!.tables.at!]).toEqual(order)
          }),
          { numRuns: runs(15) },
        )
      }
    },
  )
})

/** What is looked up, and the extent that its list ends with; `null`: it may end anywhere. */
const LOOKED_UP: readonly (readonly [string, ((m: number, n: number) => number) | null])[] = [
  ['i', (m) => m],
  ['j', (_, n) => n],
  ['i / 3', (m) => Math.ceil(m / 3)],
  ['j / 2', (_, n) => Math.ceil(n / 2)],
  ['i + j', null],
  ['count(j by i)', null],
]
const PLACES: typeof LOOKED_UP = [
  ['place[j]', (_, n) => n],
  ['place[j] / 2', (_, n) => Math.ceil(n / 2)],
]

describe('the extent at the end of a list', () => {
  const inMap = (x: string): string => `format own(c: list) over (i, j) {
  sort j by -count(i by j) -> (place, at)
  axis g = sparse_variable(segments(c))
  axis io = sparse_variable(g, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (find(c, ${x}), i, place[j])
  inverse (g, io, jo) -> (io, at[jo])
}`
  const inWhere = (x: string): string => `format own(c: list) over (i, j) {
  part csr where (find(c, ${x}) == 0)
  part rest = csr
}`
  const inKey = (x: string): string => sorted('i', `least(find(c, ${x}) by i)`, ['c'])
  const cases = [
    ...[...LOOKED_UP, ...PLACES].map(([x, end]) => ['a map', x, inMap(x), end] as const),
    ...LOOKED_UP.map(([x, end]) => ['a condition', x, inWhere(x), end] as const),
    ...LOOKED_UP.map(([x, end]) => ['a key', x, inKey(x), end] as const),
  ]
  it.each(cases)('in %s find(c, %s) uses the extent of its operand', async (_, __, text, end) => {
    const format = await formatOf(text)
    const isOfMap = format.parts.length === 1 && text.includes('segments(c)')
    fc.assert(
      fc.property(pattern, fc.integer({ min: 0, max: 20 }), (drawn, other) => {
        const [m, n] = drawn.shape
        const tensor = tensorOf(drawn)
        const right = end?.(m, n) ?? m + n
        expect(format.convert(tensor, { c: [0, right] }).parts).toHaveLength(format.parts.length)
        if (other === right) return
        if (end) {
          const refused = refusal(() => format.convert(tensor, { c: [0, other] }))
          expect(refused).toMatchObject({
            code: 'bind/list',
            expected: `ascending integers from 0 to ${right}`,
          })
        } else if (!isOfMap) format.convert(tensor, { c: [0, other] })
      }),
      { numRuns: runs(10) },
    )
  })

  const plain = (map: string): string => `format own(c: list) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (${map}, j)
  inverse (io, jo) -> (io, jo)
}`
  const split = (cond: string): string =>
    `format own(c: list) over (i, j) {\n  part csr where (${cond})\n  part rest = csr\n}`
  it.each<readonly [string, string, (i: number, c: readonly number[]) => boolean]>([
    ['nothing', plain('i'), () => true],
    ['a boundary in a map', plain('i + c[0]'), () => true],
    ['a boundary in a condition', split('i < c[0] + 2'), (i) => i < 2],
    ['segments in a condition', split('i < segments(c)'), (i, c) => i < c.length - 1],
  ])('may be any extent without a lookup, but %s', async (_, text, first) => {
    const format = await formatOf(text)
    fc.assert(
      fc.property(pattern, fc.integer({ min: 0, max: 20 }), (drawn, last) => {
        const c = [0, ...drawn.rows.filter((x) => x < last), last]
        const { parts } = format.convert(tensorOf(drawn), { c })
        expect(parts[0]!.tensor.values).toHaveLength(drawn.points.filter(([i]) => first(i, c)).length)
      }),
      { numRuns: runs(10) },
    )
  })

  it('is the same for all lookups in a list', async () => {
    const format = await formatOf('', 'csr where (find(c, i) == find(c, j)) + csr')
    const square = coords(
      [4, 4],
      [
        [0, 3],
        [1, 2],
      ],
    )
    expect(format.convert(square, { c: [0, 2, 4] }).parts.map((p) => p.tensor.values?.length)).toEqual([2, 0])
    expect(refusal(() => format.convert(coords([4, 3], [[0], [1]]), { c: [0, 2, 4] }))).toMatchObject({
      code: 'bind/list',
      expected: 'ascending integers from 0 to 4, and to 3',
    })
  })
})

describe('least', () => {
  it('is computed for segments, which are not negative', async () => {
    const format = await formatOf('', 'csr where (least(find(c, j) by i) > 0) + csr')
    const t = coords(
      [3, 4],
      [
        [0, 0, 1, 2],
        [0, 3, 2, 1],
      ],
    )
    expect(format.convert(t, { c: [0, 2, 4] }).parts.map((p) => p.tensor.values?.length)).toEqual([1, 3])
  })
  it('is rejected for possibly negative expressions, printed as in the source', async () => {
    const format = await formatOf('', 'csr where (least(find(c, j - 1) by i) > 0) + csr')
    expect(refusal(() => format.convert(coords([1, 4], [[0], [0]]), { c: [0, 4] }))).toMatchObject({
      code: 'format/least-range',
      message: 'the argument find(c, j - 1) of least may be negative',
    })
  })
})
