/** Offsets of ragged axes, and values one for each position. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { npzChunks } from '../../src/io/numpy/npz-write.ts'
import type { Bindable } from '../../src/node.ts'
import { coords, dense, devices, load, readTensor, stored } from '../../src/node.ts'
import { Folder, spt } from '../cli/support.ts'
import { numbers } from './support.ts'

const TEXT = `kernel map(lists: size, pairs: size, n: size) {
  axis k = dense_fixed(lists)
  axis p = dense_variable(k, pairs)
  axis x = dense_fixed(n)
  axis y = dense_fixed(n)
  buffer from: i32[k, p] in
  buffer to:   i32[k, p] in
  buffer W:    f32[k, p] in
  buffer X:    f32[x] in
  buffer Y:    f32[y] out
  iterate scatter [k, p] as RR { Y[to[k, p]] += W[k, p] * X[from[k, p]] }
}
kernel scale(lists: size, pairs: size) {
  axis k = dense_fixed(lists)
  axis p = dense_variable(k, pairs)
  buffer W: f32[k, p] in
  buffer Z: f32[k, p] out
  iterate scale [k, p] as SS { Z[k, p] = W[k, p] * 2 }
}
kernel ones(lists: size, pairs: size) {
  axis k = dense_fixed(lists)
  axis p = dense_variable(k, pairs)
  buffer Z: f32[k, p] out
  iterate one [k, p] as SS { Z[k, p] = 1 }
}
format tiles(b) over (k, p) {
  axis ko = dense_fixed(k)
  axis po = sparse_variable(ko, ceildiv(p, b))
  axis pi = dense_fixed(po, b)
  map (k, p) -> (k, p / b, p % b)
  inverse (ko, po, pi) -> (ko, po * b + pi)
}
kernel nested(batches: size, m: size, l: size) {
  axis b = dense_fixed(batches)
  axis i = dense_variable(b, m)
  axis j = dense_variable(i, l)
  axis q = dense_variable(b, l)
  buffer A: f32[b, i, j] in
  buffer B: f32[b, q] in
  buffer Y: f32[b] out
  buffer Z: f32[b] out
  iterate sum [b, i, j] as SRR { Y[b] += A[b, i, j] }
  iterate other [b, q] as SR { Z[b] += B[b, q] }
}
kernel grid(m: size, n: size, l: size) {
  axis i = dense_fixed(m)
  axis h = dense_fixed(i, 2)
  axis j = dense_variable(h, n)
  axis f = dense_fixed(l)
  buffer A: f32[i, h, j, f] in
  buffer Y: f32[i, f] out
  iterate sum [i, h, j, f] as SRRS { Y[i, f] += A[i, h, j, f] }
}
kernel below(m: size, n: size, l: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis p = dense_variable(j, l)
  buffer A: f32[i, j, p] in
  buffer Y: f32[i] out
  iterate sum [i, j, p] as SRR { Y[i] += A[i, j, p] }
}
kernel twice(m: size, n: size) {
  axis i = dense_fixed(m)
  axis p = dense_variable(i, 2 * n)
  buffer A: f32[i, p] in
  buffer Y: f32[i] out
  iterate sum [i, p] as SR { Y[i] += A[i, p] }
}`
const program = await load(TEXT)
const cpu = await devices.cpu()
const map = await program.kernel('map').build(cpu)
const scale = await program.kernel('scale').build(cpu)
const ones = await program.kernel('ones').build(cpu)
const tiled = await program.kernel('map').as('W', 'tiles', 2).build(cpu)
const nested = await program.kernel('nested').build(cpu)
const grid = await program.kernel('grid').build(cpu)
const below = await program.kernel('below').build(cpu)
const twice = await program.kernel('twice').build(cpu)
const ints = (...xs: number[]): Int32Array => Int32Array.from(xs)

function offsetsOf(lengths: readonly number[]): number[] {
  const out = [0]
  for (const n of lengths) out.push(out.at(-1)! + n)
  return out
}
const lengthsOf = (most = 6) => fc.array(fc.nat(5), { maxLength: most })

const lists = fc
  .record({ lengths: lengthsOf(), n: fc.integer({ min: 1, max: 6 }), bare: fc.boolean(), more: fc.nat(2) })
  .chain((s) => {
    const count = s.lengths.reduce((a, b) => a + b, 0)
    const index = fc.array(fc.nat(s.n - 1), { minLength: count, maxLength: count })
    // 0 is a value as any other.
    const value = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: count, maxLength: count })
    return fc
      .record({ from: index, to: index, W: value })
      .map((x) => ({ ...s, ...x, offsets: offsetsOf(s.lengths) }))
  })

test.each([
  ['as declared', map],
  ['in another format', tiled],
])('values by position equal those of the coordinates that offsets determine: %s', async (_, compiled) => {
  await fc.assert(
    fc.asyncProperty(lists, async ({ lengths, n, bare, more, from, to, W, offsets }) => {
      const longest = Math.max(0, ...lengths)
      const X = numbers(n)
      const given = (xs: number[], dtype: 'i32' | 'f32'): Bindable =>
        bare ? xs : dense([xs.length], xs, dtype)
      const inputs: RunInputs = {
        tensors: {
          p: bare ? offsets : dense([offsets.length], ints(...offsets)),
          from: given(from, 'i32'),
          to: given(to, 'i32'),
          W: given(W, 'f32'),
          X,
        },
        params: more > 0 ? { pairs: longest + more, lists: lengths.length } : {},
      }
      const expected = new Float32Array(n)
      to.forEach((y, e) => {
        expected[y]! += W[e]! * X[from[e]!]!
      })
      const prepared = await compiled.bind(...flatInputs(inputs))
      try {
        await prepared.run()
        expect([...(await prepared.get('Y')).values!].map((y) => y + 0)).toEqual(
          [...expected].map((y) => y + 0),
        )
        expect((await prepared.verify()).problems).toEqual([])
        // New values are in the same order.
        await prepared.set(
          'W',
          Float32Array.from(W, () => 1),
        )
        await prepared.run()
        const counted = new Float32Array(n)
        to.forEach((y, e) => {
          counted[y]! += X[from[e]!]!
        })
        expect([...(await prepared.get('Y')).values!].map((y) => y + 0)).toEqual(
          [...counted].map((y) => y + 0),
        )
      } finally {
        prepared.free()
      }
    }),
  )
})

test('outputs over the axis have its positions, with inputs and without', async () => {
  await fc.assert(
    fc.asyncProperty(lists, async ({ lengths, W, offsets, more }) => {
      const longest = Math.max(0, ...lengths)
      const params = more > 0 ? { pairs: longest + more } : {}
      const { Z } = await scale({ p: offsets, W, ...params })
      expect(Z!.shape).toEqual([lengths.length, longest + more])
      expect([...Z!.values!].map((z) => z + 0)).toEqual(W.map((w) => 2 * w + 0))
      const alone = await ones({ p: Uint32Array.from(offsets), ...params })
      expect(alone.Z!.shape).toEqual(Z!.shape)
      expect(alone.Z).toMatchObject({ coords: (Z as { coords?: unknown }).coords })
      expect([...alone.Z!.values!]).toEqual(W.map(() => 1))
    }),
  )
})

const sums = (offsets: readonly number[], values: ArrayLike<number>): number[] =>
  offsets.slice(1).map((end, k) => {
    let s = 0
    for (let e = offsets[k]!; e < end; e++) s += values[e]!
    return s
  })

test('nested offsets, and a size shared by two axes, which is the longest segment of both', async () => {
  const whole = fc
    .record({ rows: lengthsOf(4), other: fc.array(fc.nat(9), { minLength: 4, maxLength: 4 }) })
    .chain(({ rows, other }) => {
      const count = rows.reduce((a, b) => a + b, 0)
      const columns = fc.array(fc.nat(4), { minLength: count, maxLength: count })
      return columns.map((lengths) => ({ rows, lengths, other: other.slice(0, rows.length) }))
    })
  await fc.assert(
    fc.asyncProperty(whole, async ({ rows, lengths, other }) => {
      const [i, j, q] = [offsetsOf(rows), offsetsOf(lengths), offsetsOf(other)]
      const [A, B] = [numbers(j.at(-1)!), numbers(q.at(-1)!)]
      const inputs = { tensors: { i, j, q, A, B } }
      const out = await nested(...flatInputs(inputs))
      expect([...out.Y!.values!].map((y) => y + 0)).toEqual(sums(i, sums(j, A)).map((y) => y + 0))
      expect([...out.Z!.values!].map((y) => y + 0)).toEqual(sums(q, B).map((y) => y + 0))
      const { params } = nested.bindOnHost(...flatInputs(inputs))
      expect([params.get('batches'), params.get('m'), params.get('l')]).toEqual([
        rows.length,
        Math.max(0, ...rows),
        Math.max(0, ...lengths, ...other),
      ])
    }),
  )
})

test('parents of two dense axes, and rows of values at each position', async () => {
  await fc.assert(
    fc.asyncProperty(lengthsOf(4), fc.integer({ min: 1, max: 3 }), async (half, l) => {
      const j = offsetsOf([...half, ...half])
      const values = numbers(j.at(-1)! * l)
      const inputs = { tensors: { j, A: dense([j.at(-1)!, l], values) } }
      const expected = half.map((_, i) =>
        Array.from({ length: l }, (_, f) => {
          let s = 0
          for (let e = j[2 * i]!; e < j[2 * i + 2]!; e++) s += values[e * l + f]!
          return s
        }),
      )
      expect([...(await grid(...flatInputs(inputs))).Y!.values!].map((y) => y + 0)).toEqual(
        expected.flat().map((y) => y + 0),
      )
      expect(grid.bindOnHost(...flatInputs(inputs)).params.get('m')).toBe(half.length)
    }),
  )
})

test('positions of an axis with ready-made arrays', async () => {
  const arrays = { j: { indptr: ints(0, 1, 2), indices: ints(1, 0) }, p: { indptr: ints(0, 2, 3) } }
  const tensors = { p: stored([2, 2, 2], arrays), A: dense([3], [1, 2, 4]) }
  expect([...(await below(tensors)).Y!.values!]).toEqual([3, 4])
})

test('a two-dimensional tensor bound to a ragged axis is read as coordinates', async () => {
  const tensors = {
    i: coords(
      [2, 2],
      [
        [0, 1, 1],
        [0, 0, 1],
      ],
    ),
    A: coords(
      [2, 2, 1],
      [
        [0, 1, 1],
        [0, 0, 1],
        [0, 0, 0],
      ],
      [1, 2, 4],
    ),
    q: dense([2, 1], [1, 1]),
    B: dense([2, 1], [1, 2]),
  }
  expect([...(await nested(tensors)).Y!.values!]).toEqual([1, 6])
})

const flat = { from: [0, 0, 0], to: [0, 0, 0], W: [1, 1, 1], X: [1] }
const two = { from: ints(0, 0), to: ints(0, 0), W: [1, 1], X: [1] }
const REFUSED: readonly [string, () => Promise<unknown>, string, string][] = [
  [
    'fractions',
    () => map({ ...flat, p: dense([3], [0, 1, 3]) }),
    'bind/array-type: the offsets of axis p are f64',
    '32-bit integers: the first 0, never decreasing, and one more than k has positions',
  ],
  [
    'a list with a fraction',
    () => map({ ...flat, p: [0, 1.5, 3] }),
    'tensor/coords: entry 1 of p is 1.5',
    'a 32-bit integer',
  ],
  [
    'a first one that is not 0',
    () => map({ ...flat, p: [1, 3] }),
    'bind/indptr-start: indptr of axis p starts at 1',
    '0',
  ],
  [
    'one that falls',
    () => map({ ...flat, p: [0, 2, 1, 3] }),
    'bind/indptr-order: indptr of axis p falls from 2 to 1 at position 2',
    'elements that never fall',
  ],
  [
    'none',
    () => map({ ...two, p: [] }),
    'bind/indptr-length: indptr of axis p has 0 elements',
    '1: one more than the positions of its parent',
  ],
  [
    'of another number of lists',
    () => map({ ...flat, p: [0, 1, 3], lists: 3 }),
    'bind/indptr-length: indptr of axis p has 3 elements',
    '4: one more than the positions of its parent',
  ],
  [
    'more positions than values',
    () => map({ ...two, p: [0, 1, 3] }),
    'bind/values-length: from has 2 values for 3 positions (3 of p)',
    '3 values',
  ],
  [
    'segments that are longer than their bound',
    () => map({ ...flat, p: [0, 3], pairs: 2 }),
    'bind/lengths: axis p has the length 3 at position 0 of k',
    'at most 2',
  ],
  [
    'nothing but values',
    () => map({ from: dense([2], ints(0, 0)) }, { seed: 1 }),
    'bind/rank: from is bound to a tensor of 1 dimension; it is over [k, p]',
    '2 dimensions',
  ],
  [
    'a parent that has none',
    () => nested({ j: [0, 1], q: [0, 1], A: [1], B: [1] }),
    'bind/missing-array: offsets are bound to j, and the positions of the parent i are not known',
    'offsets of i too',
  ],
  [
    'a parent that stores its coordinates',
    () => below({ p: [0, 1], A: [1], m: 1, n: 1 }),
    'bind/missing-array: offsets are bound to p, and the positions of the parent j are not known',
    'the arrays of j too',
  ],
  [
    'a bound that is more than a size',
    () => twice({ p: [0, 1], A: [1] }),
    'bind/missing-size: missing size n (the extent of axis p depends on it)',
    '',
  ],
]

test.each(REFUSED)('rejected: %s', async (_, run, said, expected) => {
  const error = await run().catch((e: unknown) => e)
  if (!(error instanceof SptError)) throw error
  const [d] = error.diagnostics
  expect(`${d!.code}: ${d!.message}`).toBe(said)
  expect(d!.expected ?? '').toBe(expected)
  expect(d!.hint !== undefined || d!.code === 'tensor/coords').toBe(true)
})

test('on the command line, with all sizes, with some and with none, compared with the reference', async () => {
  const folder = new Folder()
  const line = (values: Int32Array | Float32Array) =>
    ({ values, shape: [values.length], dtype: values instanceof Int32Array ? 'i32' : 'f32' }) as const
  try {
    const data = folder.file(
      'map.npz',
      Buffer.concat([
        ...npzChunks({
          from: line(ints(0, 1, 2)),
          to: line(ints(1, 0, 1)),
          W: line(Float32Array.of(1, 0, 4)),
          X: line(Float32Array.of(1, 2, 3)),
          kpos: line(ints(0, 2, 2, 3)),
        }),
      ]),
    )
    const file = folder.file('map.spt', TEXT)
    const bound = ['from', 'to', 'W', 'X'].flatMap((name) => ['--bind', `${name}=${data}#${name}`])
    const call = [file, '--kernel', 'map', ...bound, '--bind', `p=${data}#kpos`]
    const sizes = (...given: string[]): string[] => given.flatMap((s) => ['--size', s])
    for (const [given, pairs] of [
      [[], 2],
      [sizes('pairs=5'), 5],
      [sizes('lists=3', 'pairs=4', 'n=3'), 4],
    ] as const) {
      const path = folder.at('y.npy')
      const { code, out, err } = await spt([
        'run',
        ...call,
        ...given,
        '--verify',
        '--json',
        '--out',
        `Y=${path}`,
      ])
      expect([code, err]).toEqual([0, ''])
      expect(JSON.parse(out)).toMatchObject({ sizes: { lists: 3, pairs, n: 3 }, verify: { ok: true } })
      expect([...(await readTensor(path)).values!]).toEqual([0, 13, 0])
    }
    expect((await spt(['explain', ...call, '--device', 'cpu'])).code).toBe(0)
  } finally {
    folder.remove()
  }
})
