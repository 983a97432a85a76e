/** Several tensors over one nonunique axis: what each holds is there once, however many say so. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { runs } from '../support/cases.ts'

const text = (root: string, child: string): string => `
kernel k(m: size, n: size) {
  axis i = ${root}
  axis j = ${child}
  buffer A: f32[i, j] in
  buffer B: f32[i, j] in
  buffer C: f32[i, j] inout
  buffer N: f32[] out
  buffer S: f32[] out
  iterate it [i, j] as RR {
    N[] += 1.0
    S[] += A[i, j] + 100.0 * B[i, j]
  }
  iterate of [i, j] as SS { C[i, j] += A[i, j] }
}`

const M = 4
const N = 5
/** Entries in any order, some of equal coordinates. */
const entries = fc.array(fc.tuple(fc.nat(M - 1), fc.nat(N - 1), fc.integer({ min: 1, max: 9 })), {
  maxLength: 12,
})
type Entries = readonly (readonly [number, number, number])[]

const tensor = (of: Entries) =>
  coords(
    [M, N],
    [of.map((e) => e[0]), of.map((e) => e[1])],
    of.map((e) => e[2]),
    'f32',
  )
/** How often each coordinate is there, and the sum of its values. */
const counted = (of: Entries): Map<string, number> => {
  const out = new Map<string, number>()
  for (const [i, j] of of) out.set(`${i},${j}`, (out.get(`${i},${j}`) ?? 0) + 1)
  return out
}
/** How often each is there of all of them. */
const places = (all: readonly Entries[]): Map<string, number> => {
  const of = all.map(counted)
  return new Map(
    of.flatMap((c) => [...c.keys()]).map((at) => [at, Math.max(...of.map((c) => c.get(at) ?? 0))]),
  )
}
const total = (of: Entries): number => of.reduce((n, e) => n + e[2], 0)

test.each([
  ['sparse_variable(m) nonunique', 'sparse_variable(i, n)'],
  ['sparse_variable(m) nonunique', 'sparse_fixed(i, n, 1)'],
  ['sparse_variable(m) nonunique', 'sparse_fixed(i, n, 3)'],
  ['dense_fixed(m)', 'sparse_variable(i, n) nonunique'],
])('%s, %s: the multiplicity of a coordinate is the maximum over the tensors', async (root, child) => {
  const compiled = await (await load(text(root, child))).kernel().build(createCpuDevice())
  await fc.assert(
    fc.asyncProperty(entries, entries, fc.boolean(), async (a, b, alike) => {
      const other: Entries = alike ? a.toReversed() : b
      const stored = [...places([a, other]).values()].reduce((n, k) => n + k, 0)
      const { S, N, C } = await compiled({ A: tensor(a), B: tensor(other), C: tensor(other), m: M, n: 5 })
      expect(S!.values![0]).toBe(total(a) + 100 * total(other))
      expect(N!.values![0]).toBe(stored)
      expect(C!.values!.length).toBe(stored)
      expect(Array.from(C!.values!).reduce((x, y) => x + y, 0)).toBe(total(a) + total(other))
    }),
    { numRuns: runs(40) },
  )
  compiled.release()
})

test.each([
  ['sparse_variable(m) nonunique', 'sparse_variable(i, n)'],
  ['sparse_variable(m) nonunique', 'sparse_fixed(i, n, 2)'],
  ['dense_fixed(m)', 'sparse_variable(i, n) nonunique'],
  ['dense_fixed(m)', 'sparse_fixed(i, n, 24) nonunique'],
])('%s, %s: patterns of axes and results may repeat coordinates too', async (root, child) => {
  const text = `
    kernel k(m: size, n: size) {
      axis i = ${root}
      axis j = ${child}
      axis h = dense_fixed(m)
      axis d = dense_fixed(n)
      buffer X: f32[h, d] in
      buffer Y: f32[h, d] out
      buffer S: f32[i, j] out
      buffer T: f32[i, j] out
      iterate count [i, j] as RR { Y[i, j] += X[i, j] }
      iterate one [i, j] as SS { S[i, j] = X[i, j] }
      iterate two [i, j] as SS { T[i, j] = 2 * X[i, j] }
    }`
  const compiled = await (await load(text)).kernel().build(createCpuDevice())
  const pattern = (of: Entries) => coords([M, N], [of.map((e) => e[0]), of.map((e) => e[1])])
  const values = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: M * N, maxLength: M * N })
  const bound = fc.subarray(['j', 'S', 'T'], { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(entries, entries, entries, bound, values, async (a, b, c, names, X) => {
      const given = new Map([a, b, c].map((e, k) => [['j', 'S', 'T'][k]!, e]))
      const of = names.map((n) => given.get(n)!)
      const tensors = Object.fromEntries(names.map((n) => [n, pattern(given.get(n)!)]))
      const prepared = await compiled.bind({ ...tensors, X, m: M, n: N })
      const times = places(of)
      const { problems, sample } = await prepared.verify()
      expect([problems, sample]).toEqual([[], null])
      const want = X.map((x, at) => x * (times.get(`${Math.floor(at / N)},${at % N}`) ?? 0))
      expect([...(await prepared.get('Y')).values!]).toEqual(want.map((x) => x + 0))
      expect((await prepared.verify({ sample: { count: 1 } })).problems).toEqual([])
      prepared.free()
    }),
    { numRuns: runs(40) },
  )
  compiled.release()
})

const FORMATTED = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
`

test.each(['csr', 'csc', 'dcsr', 'bsr(2)', 'hyb(1, 1)'])(
  'a tensor with an additional dense dimension does not determine the structure alone: %s',
  async (format) => {
    const text = `${FORMATTED} buffer Y: f32[i, j, f] inout
      iterate s [i, j, f] as SSS { Y[i, j, f] += A[i, j] } }`
    const compiled = await (await load(text)).kernel().as('A', format).build(createCpuDevice())
    const A = coords(
      [2, 2],
      [
        [0, 1],
        [1, 0],
      ],
      Float32Array.of(1, 2),
    ) // prettier-ignore
    const none = coords([2, 2, 0], [[], [], []], new Float32Array(0))
    const few = coords([2, 2, 2], [[0], [0], [1]], Float32Array.of(5))
    for (const Y of [none, few]) {
      const prepared = await compiled.bind({ A, Y })
      expect((await prepared.verify()).problems).toEqual([])
      prepared.free()
    }
  },
)

test('equal coordinates are read back from their part', async () => {
  const text = `${FORMATTED} buffer Y: f32[i, j, f] out
    iterate s [i, j, f] as SSS { Y[i, j, f] = A[i, j] } }`
  const compiled = await (await load(text)).kernel().as('Y', 'top_rest(1)').build(createCpuDevice())
  const A = coords(
    [2, 3],
    [
      [0, 0, 0, 0],
      [0, 1, 1, 2],
    ],
    Float32Array.of(-4, 4, -1, 4),
  ) // prettier-ignore
  const prepared = await compiled.bind({ A, d: 2 })
  expect((await prepared.verify()).problems).toEqual([])
})

test.each([
  ['sparse_variable(i) nonunique', 'sparse_variable(io, j)', true],
  ['sparse_variable(i) nonunique', 'sparse_fixed(io, j, 2) padded with last', true],
  ['sparse_variable(i) nonunique', 'sparse_fixed(io, j, 2) padded with 0', true],
  ['dense_fixed(i)', 'sparse_fixed(io, j, 24) nonunique padded with 0', true],
  ['dense_fixed(i)', 'sparse_variable(io, j) nonunique', true],
  ['sparse_variable(i)', 'sparse_fixed(io, j, 24) padded with last', false],
  ['dense_fixed(i)', 'sparse_fixed(io, j, 24) padded with 0', false],
  ['dense_fixed(i)', 'sparse_variable(io, j)', false],
] as const)(
  'a format with %s, %s keeps equal coordinates separate, results too: %s',
  async (io, jo, keeps) => {
    const program = await load(`
    format f() over (i, j) {
      axis io = ${io}
      axis jo = ${jo}
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n) nonunique
      buffer A: f32[i, j] in
      buffer B: f32[i, j] in
      buffer S: f32[i, j] out
      iterate one [i, j] as SS { S[i, j] = A[i, j] + 10 * B[i, j] }
    }`)
    const compiled = await program.kernel().as('A', 'f').build(createCpuDevice())
    await fc.assert(
      fc.asyncProperty(entries, entries, async (a, b) => {
        const given = { tensors: { A: tensor(a), B: tensor(b) }, params: { m: M, n: N } }
        if (!keeps && [a, b].some((e) => counted(e).size < e.length)) {
          await expect(compiled.bind(...flatInputs(given))).rejects.toThrow('bind/duplicates')
          return
        }
        const prepared = await compiled.bind(...flatInputs(given))
        expect((await prepared.verify()).problems).toEqual([])
        const { values } = await prepared.get('S')
        expect(values!.length).toBe([...places([a, b]).values()].reduce((x, y) => x + y, 0))
        prepared.free()
      }),
      { numRuns: runs(25) },
    )
    compiled.release()
  },
)

/** Forms of i, then of j under it; what is padded, and its rows' parts, are told from elements. */
const further = fc.record({
  root: fc.constantFrom(
    ['sparse_variable(i) nonunique', 'sparse_variable(io, j)'],
    ['sparse_variable(i) nonunique', 'sparse_fixed(io, j, 2) padded with last'],
    ['sparse_variable(i) nonunique', 'sparse_fixed(io, j, 2) padded with 0'],
    ['sparse_variable(i) nonunique', 'sparse_fixed(io, j, 2) padded with 2'],
    ['dense_fixed(i)', 'sparse_fixed(io, j, 24) nonunique padded with 0'],
    ['dense_fixed(i)', 'sparse_fixed(io, j, 24) nonunique padded with 3'],
    ['dense_fixed(i)', 'sparse_variable(io, j) nonunique'],
  ),
  over: fc.constantFrom('i, j, f', 'f, i, j', 'i, j, f, g', 'g, i, j, f'),
  on: fc.constantFrom('A', 'G'),
  bound: fc.subarray(['A', 'B', 'j'], { minLength: 1 }),
  all: fc.tuple(entries, entries, entries),
})

test('separate equal coordinates, in results with additional dense dimensions', async () => {
  const device = createCpuDevice()
  await fc.assert(
    fc.asyncProperty(further, async ({ root: [io, jo], over, on, bound, all }) => {
      const program = await load(`
        format f() over (i, j) {
          axis io = ${io}
          axis jo = ${jo}
          map (i, j) -> (i, j)
          inverse (io, jo) -> (io, jo)
        }
        kernel k(m: size, n: size, d: size) {
          axis i = dense_fixed(m)
          axis j = sparse_variable(i, n) nonunique
          axis f = dense_fixed(d)
          axis g = dense_fixed(2)
          buffer A: f32[i, j] in
          buffer B: f32[i, j] in
          buffer X: f32[f] in
          buffer G: f32[${over}] out
          iterate one [${over}] as ${over.replace(/[^a-z]/g, '').replace(/./g, 'S')} {
            G[${over}] = A[i, j] + 10 * B[i, j] + 100 * X[f]
          }
        }`)
      const compiled = await program.kernel().as(on, 'f').build(device)
      const [a, b, j] = all
      const given = {
        A: tensor(a),
        B: tensor(b),
        j: coords([M, N], [j.map((e) => e[0]), j.map((e) => e[1])]),
      }
      const tensors = Object.fromEntries(bound.map((name) => [name, given[name as 'A']]))
      const prepared = await compiled.bind(
        { ...tensors, X: Float32Array.of(1, 2, 3), m: M, n: N, d: 3 },
        { seed: 1 },
      )
      expect((await prepared.verify()).problems).toEqual([])
      const { values } = await prepared.get('G')
      const own = { A: a, B: b, j }
      const stored = [...places(bound.map((name) => own[name as 'A'])).values()].reduce((x, y) => x + y, 0)
      expect(values!.length).toBe(stored * 3 * (over.includes('g') ? 2 : 1))
      prepared.free()
      compiled.release()
    }),
    { numRuns: runs(120) },
  )
})

test('equal coordinates on one of several trees share a position, although the tensor keeps duplicates', async () => {
  const program = await load(`
    format blocks() over (i, j) {
      axis io = sparse_variable((i + 1) / 2) nonunique
      axis jo = sparse_variable(io, j)
      axis ii = dense_fixed(2)
      map (i, j) -> (i / 2, j, i % 2)
      inverse (io, jo, ii) -> (io * 2 + ii, jo)
    }
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n) nonunique
      buffer A: f32[i, j] in
      buffer S: f32[] out
      iterate sum [i, j] as RR { S[] += A[i, j] }
    }`)
  const compiled = await program.kernel().as('A', 'blocks').build(createCpuDevice())
  await fc.assert(
    fc.asyncProperty(entries, async (all) => {
      const distinct = all.filter((e, k) => all.findIndex((x) => x[0] === e[0] && x[1] === e[1]) === k)
      const prepared = await compiled.bind({ A: tensor(distinct), m: M, n: N })
      const blocks = new Set(distinct.map(([i, j]) => `${i >> 1},${j}`)).size
      expect(prepared.formats[0]!.slots).toBe(2 * blocks)
      prepared.free()
    }),
    { numRuns: runs(20) },
  )
})
