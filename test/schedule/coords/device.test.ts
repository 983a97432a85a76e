/** The same through the whole pipeline: bound in the caller's coordinates, lowered, run, read back. */
import { describe, test } from 'vitest'
import { createCpuDevice } from '../../../src/runtime/cpu/device.ts'
import { agreeOnDevice, agreeOnStages, bind, expectedOf } from '../../properties/agree.ts'
import { sample } from '../../support/cases.ts'
import { compilationOf, type Data } from './apply.ts'
import { FORMATS, KERNELS, REFUSED, USES } from './formats.ts'
import { dataOf, only, sampleOf } from './matrices.ts'

/** Empty rows and columns and a long row; one element, so that most parts are empty; nothing. */
const MATRICES: readonly Data[] = [
  dataOf(5, 7, [0, 7, 8, 9, 10, 11, 12, 13, 22, 30, 33], 7),
  dataOf(3, 4, [5], 5),
  dataOf(0, 3, [], 2),
]

const device = createCpuDevice()

describe.each(Object.entries(KERNELS))('%s', (name, text) => {
  test.each(
    sample(
      USES.filter((use) => !REFUSED[name]?.has(use)),
      7,
    ),
  )('%s', async (use) => {
    const c = compilationOf(FORMATS + text, `A as ${use}`)
    const buffers = c.source.buffers.map((b) => b.name)
    for (const data of MATRICES) {
      const sample = sampleOf(only(data, buffers), use.includes('rows,'))
      const expected = expectedOf(sample, c)
      if (data === MATRICES[0]) agreeOnStages(c, bind(sample, c), expected)
      await agreeOnDevice(device, c, bind(sample, c), expected)
    }
  })
})

describe('more than one step, tensors of more dimensions, other fill values', () => {
  const SUM = KERNELS['sum per row']!
  const BATCH = `kernel k(m: size, n: size) {
    axis t = dense_fixed(2)
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: i32[i, j] in
    buffer x: i32[i] in
    buffer D: i32[t, i, j] out
    iterate twice [t, i, j] as SSS { D[t, i, j] = A[i, j] * (t + 1) + x[i] }
  }`
  const FILL = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis c = dense_fixed(n)
    buffer A: i32[i, j] in fill 9
    buffer y: i32[i, c] out
    buffer z: i32[i] out
    iterate at [i, c] as SS { y[i, c] = A[i, c] }
    iterate least [i, j] as SR { z[i] min= A[i, j] }
  }`
  test.each([
    ['A as two_sides\nA_p1 as by_length', SUM],
    ['A as ranges(2)\nA_p0 as hyb(1, 1)\nA_p1 as csc', SUM],
    ['A as bsr(2) where (density(2) >= 0.75) + csr\nA_csr as two_sides', SUM],
    ['D as hyb(2, 1)', BATCH],
    ['A as two_sides', BATCH],
    ['A as hyb(1, 1)', FILL],
    ['A as csr where (top(1 by i)) + ell', FILL],
  ])('%s', async (steps, text) => {
    const c = compilationOf(FORMATS + text, steps)
    const buffers = c.source.buffers.map((b) => b.name)
    for (const data of MATRICES) {
      const sample = sampleOf(only(data, buffers), false)
      const expected = expectedOf(sample, c)
      agreeOnStages(c, bind(sample, c), expected)
      await agreeOnDevice(device, c, bind(sample, c), expected)
    }
  })
})
