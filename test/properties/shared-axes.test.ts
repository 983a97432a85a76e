/** Dense tensors over axes that others are over, each stored in formats of its own: the result is that of the reference. */
import { beforeAll, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { SEED } from '../support/cases.ts'
import { sharedAxes } from '../support/shared-axes-gen.ts'
import { agreeOnAll } from './agree.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { agreeInCases } from './property-cases.ts'

let pool: Pool

beforeAll(async () => {
  pool = await poolOf(SEED)
})

test('every stage and the cpu agree with the reference, in every format', async () => {
  const device = createCpuDevice()
  await agreeInCases(device, (choices) => formatCase(choices, pool, 4, sharedAxes), 12)
}, 3_600_000)

test('a set parameter has the dimensions of its format, whatever those of others are', async () => {
  const text = `
    kernel k(m: size, n: size, o: size) {
      axis i = dense_fixed(m)
      axis p = dense_fixed(n)
      axis j = dense_fixed(o)
      buffer A: i32[i, p] in
      buffer T: i32[i, p, j] in
      buffer C: i32[i] out
      iterate sum [i, p, j] as SRR { C[i] += A[i, p] * T[i, p, j] }
    }`
  const masked = pool.standard.find((f) => f.name === 'masked_rest')!
  const rows = pool.standard.find((f) => f.name === 'csf')!
  const c = parseProgram(text)
    .kernel('k')
    .compilation.onCoords({ kind: 'as', buffer: 'A', format: masked, args: ['mask'] })
    .onCoords({ kind: 'as', buffer: 'T', format: rows, args: [] })
  const dense = (shape: number[]) => {
    const values = Int32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, k) => (k * 7) % 4)
    return { kind: 'dense', shape, values, dtype: 'i32' } as const
  }
  const coords = [Int32Array.of(0, 1, 1), Int32Array.of(2, 0, 1)]
  const mask = { kind: 'coords', shape: [3, 4], coords, values: null, dtype: 'bool' } as const
  await agreeOnAll(c, { tensors: { A: dense([3, 4]), T: dense([3, 4, 2]), mask } })
})

test('dense axes of a format are shared by the tensors of its structure', async () => {
  const band = pool.standard.find((f) => f.name === 'band_rest')!
  const csr = pool.standard.find((f) => f.name === 'csr')!
  const text = `
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: i32[i, j] in
      buffer M: i32[i, j] in
      buffer C: i32[i] out
      iterate sum [i, j] as SR { C[i] += A[i, j] * (M[i, j] + 1) }
    }`
  const c = parseProgram(text)
    .kernel('k')
    .compilation.onCoords({ kind: 'as', buffer: 'A', format: band, args: [2, 2] })
    .onCoords({ kind: 'as', buffer: 'A_band', format: csr, args: [] })
  const coords = [Int32Array.of(1, 0, 4, 2), Int32Array.of(0, 0, 0, 0)]
  const A = {
    kind: 'coords',
    shape: [7, 1],
    coords,
    values: Int32Array.of(1, 2, 1, 3),
    dtype: 'i32',
  } as const
  await agreeOnAll(c, { tensors: { A, M: A } })
})
