/**
 * What passes allocate lies where all its uses see it, and every pass ends: steps after which registers of one loop used to
 * be asked for outside of it. Each case is verified after every pass, printed for every target, and computed.
 */
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'

const PROGRAM = parseProgram(`
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[c] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR where (i < 2) { y[i] += A[i, j] * x[j] }
}
kernel listed(m: size, n: size, d: size) {
  axis i = sparse_variable(m)
  axis j = sparse_variable(i, n)
  axis id = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer W: f32[f] in
  buffer Y: f32[id, f] out
  iterate sum [i, j, f] as RRR { Y[i, f] += A[i, j] * W[f] }
}
kernel chains(m: size, n: size, p: size, d: size) {
  axis i = sparse_variable(m)
  axis j = sparse_variable(i, n)
  axis k = sparse_variable(j, p)
  axis e = fused(i, j)
  axis f = dense_fixed(d)
  axis id = dense_fixed(m)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j, k] in
  buffer Y: f32[id, jd] out
  iterate sum [e, f, k] as SRR { Y[i, j] += A[i, j, k] * f32(f + 1) }
}`)

const matrix = coords(
  [4, 5],
  [
    [0, 0, 1, 1, 1, 3],
    [0, 4, 1, 2, 3, 0],
  ],
  [1, -2, 3, 4, -5, 6],
)
const vector = (n: number) =>
  dense(
    [n],
    Float32Array.from({ length: n }, (_, k) => k - 1),
  )
const cube = coords(
  [4, 4, 3],
  [
    [0, 1, 1, 3, 3],
    [0, 2, 2, 1, 3],
    [0, 1, 2, 0, 2],
  ],
  [1, 2, 3, 4, 5],
)

const DATA: Readonly<Record<string, Inputs>> = {
  rows: { tensors: { A: matrix, x: vector(5) } },
  listed: { tensors: { A: matrix, W: vector(3) } },
  chains: { tensors: { A: cube }, params: { d: 2 } },
}

const CASES: readonly [string, string, (k: Kernel) => Kernel][] = [
  [
    'rows',
    'a condition asks where a search ends that moves on',
    (k) => k.fuse(['i', 'j'], 'e').split('e', 4, ['eo', 'ei']),
  ],
  [
    'rows',
    'in two loops',
    (k) =>
      k
        .fuse(['i', 'j'], 'e')
        .split('e', 2, ['eo', 'ei'])
        .split('eo', 2, ['ea', 'eb'])
        .cacheRead('x', 'ei', 'register'),
  ],
  [
    'chains',
    'a sum starts outside of the loop in which the search moves on',
    (k) =>
      k
        .split('e', 2, ['eo', 'ei'])
        .reorder('f', 'ei')
        .split('eo', 2, ['ea', 'eb'])
        .bind({ ea: 'block.x', eb: 'thread.x' })
        .split('k', 2, ['ka', 'kb'])
        .rfactor('kb'),
  ],
  [
    'listed',
    'the row of an element is read where it is combined',
    (k) => k.atomic('Y').bind({ i: 'block.x' }).accumulate('Y', 'f').cacheRead('i_indices', 'f', 'register'),
  ],
  [
    'listed',
    'and its place',
    (k) =>
      k
        .atomic('Y')
        .split('f', 2, ['fo', 'fi'])
        .accumulate('Y', 'fi')
        .cacheRead('i_indices', 'fi', 'register'),
  ],
]

test.each(CASES)('%s: %s', async (name, _, steps) => {
  const { compilation: c } = steps(PROGRAM.kernel(name))
  const bound = bindInputs(c.kernel, DATA[name]!)
  const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
  agreeOnStages(c, bound, expected)
  for (const target of ['js', 'wgsl', 'cuda'] as const) expect(c.texts(target).length).toBeGreaterThan(0)
  await agreeOnDevice(createCpuDevice(), c, bound, expected)
})

test('index arrays are prefetched by inline assembly as by calls', () => {
  const text = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis c = dense_fixed(n)
    buffer A: f32[i, j] in
    buffer x: f32[c] in
    buffer y: f32[i] out
    iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
  }
  schedule k.s { split j by 4 -> (jo, ji)  cache_read j_indices at jo in register }`
  const k = parseProgram(text).kernel()
  const called = k.split('j', 4, ['jo', 'ji']).cacheRead('j_indices', 'jo', 'register')
  expect(k.schedule('s').show(2)).toBe(called.show(2))
})
