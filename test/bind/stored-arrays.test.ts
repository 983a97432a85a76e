/** Ready-made parts, of tensors and of what formats take next to them. */
import { expect, test } from 'vitest'
import { coords, dense, devices, load, stored } from '../../src/node.ts'
import { reportOf } from '../../src/run/bind/results/format-report.ts'
import { FORMATS, KERNELS } from './programs.ts'

const ints = (...xs: number[]): Int32Array => Int32Array.from(xs)
const floats = (...xs: number[]): Float32Array => Float32Array.from(xs)

test('a vector in blocks, with a partial last block', async () => {
  const program = await load(`format blocks(b) over (j) {
    axis jo = sparse_variable(ceildiv(j, b))
    axis ji = dense_fixed(b)
    map (j) -> (j / b, j % b)
    inverse (jo, ji) -> (jo * b + ji)
  }
  kernel k(n: size) {
    axis j = sparse_variable(n)
    axis c = dense_fixed(n)
    buffer A: f32[j] in
    buffer x: f32[c] in
    buffer y: f32[] out
    iterate all [j] as R { y[] += A[j] * x[j] }
  }`)
  const compiled = await program
    .kernel()
    .as('A', 'blocks', 2)
    .build(await devices.cpu())
  const A = stored([3, 2], { jo: { indptr: ints(0, 2), indices: ints(0, 2) } }, floats(1, 0, 2, 0))
  const prepared = await compiled.bind({ A, x: dense([5], [1, 2, 3, 4, 5]) })
  expect(await prepared.verify()).toMatchObject({ problems: [] })
  expect([...(await prepared.get('y')).values!]).toEqual([11])
  expect(reportOf(prepared.executable.bound)[0]!.stored).toBe(2)
  prepared.free()
})

test('a set', async () => {
  const kernel = (await load(FORMATS + KERNELS)).kernel('multiply').as('A', 'chosen', 'mask')
  const compiled = await kernel.build(await devices.cpu())
  const A = coords(
    [3, 4],
    [
      [0, 0, 2],
      [0, 3, 2],
    ],
    [1, 2, 3],
  )
  const B = dense([4, 1], [1, 2, 3, 4])
  const mask = coords([3, 4], [[0], [3]])
  const csr = stored([3, 4], { j: { indptr: ints(0, 1, 1, 1), indices: ints(3) } }, null)
  const [want, got] = [mask, csr].map((m) => compiled.bindOnHost({ A, B, mask: m }))
  expect(reportOf(got!)[0]!.parts.map((p) => p.stored)).toEqual(
    reportOf(want!)[0]!.parts.map((p) => p.stored),
  )
  expect(reportOf(got!)[0]!.parts.map((p) => p.stored)).toEqual([1, 2])
})

test('zeros of dense dimensions beside a format are elements, where the format stores coordinates', async () => {
  const program = await load(`import "sparsetile/kernels/formats.spt"
  kernel k(m: size, n: size, d: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis f = dense_fixed(d)
    buffer A: f32[i, j, f] in
    buffer C: f32[i] out
    iterate all [i, j, f] as SRR { C[i] += A[i, j, f] + 1 }
  }`)
  for (const [as, jo] of [
    ['csr', { indptr: ints(0, 1, 2), indices: ints(0, 1) }],
    ['ell(2)', { indices: ints(0, 2, 1, 2) }],
  ] as const) {
    const compiled = await program
      .kernel()
      .as('A', as)
      .build(await devices.cpu())
    const values = as === 'csr' ? floats(1, 0, 0, 0) : floats(1, 0, 7, 7, 0, 0, 7, 7)
    const prepared = await compiled.bind({ A: stored([2, 2, 2], { jo }, values) })
    await prepared.run()
    expect([...(await prepared.get('C')).values!]).toEqual([3, 2])
    expect(await prepared.verify()).toMatchObject({ problems: [] })
    prepared.free()
  }
})
