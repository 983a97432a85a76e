/** What indices through permutations tell apart, on coordinates and in loops: never more than their values do. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { determined } from '../../src/analysis/dependence/coordinate-injectivity.ts'
import { blockOf } from '../../src/analysis/dependence/subscript-injectivity.ts'
import { denseAxis } from '../../src/ir/coordinates/axis.ts'
import { add, div, type Expr, int, load, mul, variable } from '../../src/ir/expressions/expr.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import { runs } from '../support/cases.ts'
import { loop } from '../support/stage2-builders.ts'

const EXTENTS = { x: 6, y: 4 } as const
const TABLE = 64

/** Over x, y and tables p and q, some of them digits as formats write them. */
const expressions: fc.Arbitrary<Expr> = fc.letrec<{ e: Expr }>((tie) => ({
  e: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(variable('x'), variable('y'), int(1)),
    fc.tuple(fc.constantFrom('p', 'q'), tie('e')).map(([name, i]) => load(name, [i], 'i32')),
    fc.tuple(fc.constantFrom('p', 'q'), tie('e')).map(([name, i]) => load(name, [i], 'i32')),
    fc.tuple(tie('e'), fc.constantFrom(2, 4, 6), tie('e')).map(([a, c, b]) => add(mul(a, int(c)), b)),
    fc.tuple(tie('e'), fc.constantFrom(2, 4)).map(([a, c]) => div(a, int(c))),
  ),
})).e

const permutation = fc.shuffledSubarray(
  Array.from({ length: TABLE }, (_, k) => k),
  { minLength: TABLE, maxLength: TABLE },
)

/** `undefined`: it reads beyond a table, and nothing is done there. */
function numberAt(e: Expr, at: Readonly<Record<string, number>>, tables: Tables): number | undefined {
  if (e.kind === 'const') return e.value
  if (e.kind === 'var') return at[e.name]!
  if (e.kind === 'load') {
    const k = numberAt(e.index[0]!, at, tables)
    return k === undefined ? undefined : tables[e.buffer as 'p'][k]
  }
  if (e.kind !== 'binary') throw new Error(e.kind)
  const [a, b] = [numberAt(e.a, at, tables), numberAt(e.b, at, tables)]
  if (a === undefined || b === undefined) return undefined
  return e.op === 'add' ? a + b : e.op === 'mul' ? a * b : Math.floor(a / b)
}
type Tables = Readonly<Record<'p' | 'q', readonly number[]>>

const points = [...Array(EXTENTS.x).keys()].flatMap((x) =>
  [...Array(EXTENTS.y).keys()].map((y) => ({ x, y })),
)
const tables = fc.record({ p: permutation, q: permutation })

test('coordinates: p[x] * 4 + y determines x and y', () => {
  const axes = new Map(Object.entries(EXTENTS).map(([n, e]) => [n, denseAxis(n, int(e))]))
  const told = (index: readonly Expr[]): ReadonlySet<string> => {
    const around = [...axes].map(([name, axis]) => ({
      iter: { name, axis: name, kind: 'S' as const },
      coords: [{ name, axis }],
    }))
    const access = {
      buffer: 'B',
      index,
      mode: 'assign',
      reducer: null,
      around,
      span: undefined,
      order: 0,
    } as const
    return new Set(
      determined(access, [], axes, {
        permutations: new Set(['p', 'q']),
        lists: new Map(),
        placed: new Set(),
      }).keys(),
    )
  }
  const [x, y] = [variable('x'), variable('y')]
  const tile = add(mul(load('p', [x], 'i32'), int(4)), y)
  expect(told([tile])).toEqual(new Set(['x', 'y']))
  expect(told([load('q', [tile], 'i32')])).toEqual(new Set(['x', 'y']))
  expect(told([add(mul(load('p', [x], 'i32'), int(3)), y)])).toEqual(new Set())
  fc.assert(
    fc.property(fc.array(expressions, { minLength: 1, maxLength: 2 }), tables, (index, t) => {
      for (const name of told(index) as ReadonlySet<'x' | 'y'>) {
        const seen = new Map<string, number>()
        for (const at of points) {
          const values = index.map((e) => numberAt(e, at, t))
          if (values.includes(undefined)) continue
          expect(seen.get(values.join()) ?? at[name]).toBe(at[name])
          seen.set(values.join(), at[name])
        }
      }
    }),
    { numRuns: runs(2000) },
  )
})

test('loops: blocks of one program are disjoint', () => {
  const inner = new Map<string, For>([['y', loop('y', EXTENTS.y, []) as For]])
  const block = (e: Expr): string | undefined =>
    blockOf(e, 'x', { inner, indptr: new Set(), distinct: ['p', 'q'] })
  const [x, y] = [variable('x'), variable('y')]
  expect(block(add(mul(load('p', [x], 'i32'), int(4)), y))).toBeDefined()
  expect(block(add(mul(load('p', [x], 'i32'), int(3)), y))).toBeUndefined()
  fc.assert(
    fc.property(expressions, expressions, tables, (a, b, t) => {
      const [own, other] = [block(a), block(b)]
      if (own === undefined) return
      const all = [a, ...(other === own ? [b] : [])]
      const seen = new Map<number, number>()
      for (const at of points)
        for (const e of all) {
          const value = numberAt(e, at, t)
          if (value === undefined) continue
          expect(seen.get(value) ?? at.x).toBe(at.x)
          seen.set(value, at.x)
        }
    }),
    { numRuns: runs(2000) },
  )
})
