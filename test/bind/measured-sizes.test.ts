/** Sizes of formats that nobody gives: measured where they are whole extents or widths, and refused elsewhere. */

import { expect, test } from 'vitest'
import type { Inputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense, devices, load } from '../../src/node.ts'

const text = (width: string): string => `
format halves(w: size) over (j) {
  axis jo = dense_fixed(w)
  axis ji = sparse_variable(jo, 2)
  map (j) -> (j / 2, j % 2)
  inverse (jo, ji) -> (jo * 2 + ji)
}
format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis ii = dense_fixed(io, b)
  axis jo = sparse_variable(ii, j)
  map (i, j) -> (i / b, i % b, j)
  inverse (io, ii, jo) -> (io * b + ii, jo)
}
format ell(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, ${width})
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format flat over (i, j) {
  axis p = sparse_variable(i * j)
  map (i, j) -> (i * size(j) + j)
  inverse (p) -> (p / size(j), p % size(j))
}
kernel vector(n: size) {
  axis j = sparse_variable(n)
  axis c = dense_fixed(n)
  buffer A: f32[j] in
  buffer x: f32[c] in
  buffer y: f32[] out
  iterate all [j] as R { y[] += A[j] * x[j] }
}
kernel matrix(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate all [i, j] as SR { y[i] += A[i, j] }
}`

const A = {
  vector: coords([7], [[0, 1, 5]], [1, 2, 3]),
  matrix: coords(
    [2, 9],
    [
      [0, 0, 1],
      [1, 8, 2],
    ],
    [1, 2, 3],
  ),
}

test.each([
  ['vector', ['halves']],
  ['vector', ['halves', 'blocks']],
  ['vector', ['halves', 'flat']],
  ['matrix', ['ell', 'flat']],
] as const)('%s as %j', async (name, formats) => {
  const [first, second] = formats
  const kernel = (await load(text('w'))).kernel(name).as('A', first)
  const last =
    second === undefined ? kernel : second === 'blocks' ? kernel.as('A', second, 2) : kernel.as('A', second)
  const tensors = { A: A[name], ...(name === 'vector' ? { x: dense([7], [1, 2, 3, 4, 5, 6, 7]) } : {}) }
  const prepared = await (await last.build(await devices.cpu())).bind(tensors)
  expect((await prepared.verify()).problems).toEqual([])
  prepared.free()
})

test('the width of a declared axis', async () => {
  const program = await load(`kernel padded(m: size, n: size, w: size) {
  axis i = dense_fixed(m)
  axis j = sparse_fixed(i, n, w)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate all [i, j] as SR { y[i] += A[i, j] }
}`)
  const compiled = await program.kernel().build(await devices.cpu())
  const { y } = await compiled({ A: A.matrix })
  expect([...y!.values!]).toEqual([3, 3])
})

test('a width that only occurs in an expression', async () => {
  const kernel = (await load(text('w + 1'))).kernel('matrix').as('A', 'ell')
  const compiled = await kernel.build(await devices.cpu())
  await expect(compiled.bind({ A: A.matrix })).rejects.toThrow(
    'bind/missing-size: missing size w (the width of axis jo depends on it)',
  )
  const prepared = await compiled.bind({ A: A.matrix, w: 1 })
  expect((await prepared.verify()).problems).toEqual([])
  prepared.free()
})

test('a missing size names the inputs whose shapes determine it', async () => {
  const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm').schedule('cpu')
  const compiled = await kernel.build(await devices.cpu())
  const hint = (tensors: Inputs) =>
    compiled(tensors).catch((e) => e.diagnostics.map((d: { hint: string }) => d.hint))
  const A = coords([2, 3], [[0], [1]], [1])
  expect(await hint({ A })).toEqual(['give d: 64, or bind B'])
  expect(await hint({})).toEqual([
    'give m: 64, or bind A',
    'give n: 64, or bind A, or bind B',
    'give d: 64, or bind B',
  ])
})
