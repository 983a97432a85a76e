/** The coordinates of what is stored sparse are given: never guessed, and named where they are random. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { Random, randomCoords } from '../../src/run/bind/sources/random-tensors.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Tensor } from '../../src/storage/tensor.ts'

const kernel = (role: string, over = 'u'): string => `
kernel union(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis u = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i, ${over}] ${role}
  buffer Y: f32[i] out
  iterate add [i, ${over}] as SS { C[i, ${over}] = 2 * A[i, ${over}] }
  iterate sum [i, w in ${over}] as SR { Y[i] += C[i, w] }
}`

const A = coords(
  [2, 3],
  [
    [0, 1],
    [1, 2],
  ],
  [1, 2],
  'f32',
)
const U = coords(
  [2, 3],
  [
    [0, 0, 1],
    [0, 1, 2],
  ],
)

async function run(text: string, tensors: Record<string, Tensor>, seed?: number) {
  const compiled = await parseProgram(text).kernel().build(createCpuDevice())
  return compiled.bind(
    ...flatInputs({ tensors, params: { m: 2, n: 3 }, ...(seed === undefined ? {} : { seed }) }),
  )
}

test.each(['out', 'local'])('%s', async (role) => {
  for (const seed of [undefined, 1])
    await expect(run(kernel(role), { A }, seed)).rejects.toThrow(
      'bind/no-structure: axis u of C has no structure',
    )
})

test('the initial value of an inout tensor is bound, or random with a seed', async () => {
  await expect(run(kernel('inout'), { A })).rejects.toThrow('bind/missing-buffer: buffer C of kernel')
  const dense = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    buffer X: f32[i] inout
    iterate s [i] as S { X[i] = X[i] + 1 }
  }`
  await expect(run(dense, {})).rejects.toThrow('bind/missing-buffer: buffer X of kernel')
  expect(await run(dense, {}, 1)).toBeDefined()
})

test('bound for the axis, for the tensor, or by an input', async () => {
  for (const [text, tensors] of [
    [kernel('out'), { A, u: U }],
    [kernel('out'), { A, C: U }],
    [kernel('out', 'j'), { A }],
  ] as const) {
    const prepared = await run(text, tensors)
    await prepared.run()
    expect([...(await prepared.get('Y')).values!]).toEqual([2, 4])
  }
})

test('a list without a tensor is bound, or random with a seed', async () => {
  const text = `kernel gathered(m: size, n: size) {
    axis g = dense_fixed(m)
    axis r = sparse_variable(g, n)
    axis i = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y: f32[g] out
    iterate sum [g, r] as SR { Y[g] += X[r] }
  }`
  const X = { kind: 'dense', shape: [3], values: Float32Array.of(1, 2, 4), dtype: 'f32' } as const
  await expect(run(text, { X })).rejects.toThrow('bind/no-structure: axis r has no structure')
  expect((await run(text, { X }, 1)).executable.bound.random).toEqual(['r'])
  const prepared = await run(text, { X, r: U })
  await prepared.run()
  expect([...(await prepared.get('Y')).values!]).toEqual([3, 4])
})

test('dense axes take no structure from unbound buffers', async () => {
  const text = `kernel k(m: size, n: size) {
    axis f = dense_fixed(2)
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: f32[i, j] in
    buffer O: f32[i, j, f] out
    iterate all [i, j, f] as SSS { O[i, j, f] = A[i, j] * (f + 1) }
  }`
  const prepared = await run(text, { A })
  await prepared.run()
  expect([...(await prepared.get('O')).values!]).toEqual([1, 2, 2, 4])
})

test('random rows of all lengths', () => {
  const random = new Random(1)
  const rows = Array.from({ length: 40 }, () => randomCoords([3], ['prefix'], random)[0]!)
  expect(new Set(rows.map((r) => r.length))).toEqual(new Set([0, 1, 2, 3]))
})

test('random inputs are named', async () => {
  const prepared = await run(kernel('out', 'j'), {}, 3)
  expect(prepared.executable.bound.random).toEqual(['j', 'A'])
  const inout = await run(kernel('inout'), { A }, 3)
  expect(inout.executable.bound.random).toEqual(['u', 'C'])
})

const PREFIX = `format rows() over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
kernel count(m: size, n: size) {
  axis i = sparse_variable(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: i32[] out
  iterate zero [] { C[] = 0 }
  iterate rows [i] as R { C[] += i + 1 }
}`

test.each([
  [[0, 1], null],
  [[0], null],
  [[0, 1, 2], 'i is bound to structure with (i) = (2)'],
] as const)('structure of the first axes %j, under a format', async (rows, problem) => {
  const k = parseProgram(PREFIX).kernel()
  const B = coords(
    [3, 3],
    [
      [0, 1],
      [1, 2],
    ],
    [1, 2],
    'f32',
  )
  const given = { tensors: { A: B, i: coords([3], [[...rows]]) }, params: { m: 3, n: 3 } }
  for (const formatted of [false, true]) {
    const compiled = await (formatted ? k.as('A', 'rows') : k).build(createCpuDevice())
    if (formatted && problem) await expect(compiled.bind(...flatInputs(given))).rejects.toThrow(problem)
    else {
      const prepared = await compiled.bind(...flatInputs(given))
      await prepared.run()
      expect((await prepared.verify()).problems).toEqual([])
    }
  }
})

test('a bitmap of two tensors, row by row', async () => {
  const text = `kernel k(m: size, d: size) {
    axis i = dense_fixed(m)
    axis j = bitmap(i, 40)
    axis k = sparse_variable(j, d)
    buffer A: f32[i, j] in
    buffer B: f32[i, j, k] in
    buffer Y: f32[i] out
    iterate all [i, j, k] as SRR { Y[i] += A[i, j] * B[i, j, k] }
  }`
  const at = [
    [0, 2, 2],
    [35, 3, 36],
  ]
  const tensors = { A: coords([3, 40], at, [1, 2, 3]), B: coords([3, 40, 2], [...at, [1, 0, 1]], [4, 5, 6]) }
  const prepared = await (await parseProgram(text).kernel().build(createCpuDevice())).bind(tensors)
  await prepared.run()
  expect([...(await prepared.get('Y')).values!]).toEqual([4, 0, 28])
})

test('the same seed gives the same numbers everywhere', () => {
  const random = new Random(1)
  expect(Array.from({ length: 5 }, () => random.below(1000))).toEqual([627, 2, 527, 981, 968])
})
