/** Statements in both branches of a condition that write one element: iterations stay apart. */
import { test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, agreeOnStages, bind, expectedOf } from '../properties/agree.ts'
import { compilationOf } from './coords/apply.ts'
import { FORMATS } from './coords/formats.ts'
import { dataOf, only, sampleOf } from './coords/matrices.ts'

const BRANCHES = `
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer D: i32[i, j] out
  iterate t [i, j] as SS {
    if (A[i, j] > 0) { D[i, j] = A[i, j] * 2 } else { D[i, j] = 7 }
    D[i, j] = D[i, j] + 1
  }
}
`
const DATA = dataOf(5, 7, [0, 7, 8, 9, 10, 11, 12, 13, 22, 30, 33], 7)

test.each([
  ['pieces_ell(2)', 'bind io to block.x'],
  ['sell(2, 4)', 'bind so to block.x, ii to thread.x'],
  ['csr', 'bind io to block.x'],
  ['bsr(2)', 'bind io to block.x, ii to thread.y, ji to thread.x'],
])('rows of %s can be bound to threads', async (format, steps) => {
  const c = compilationOf(FORMATS + BRANCHES, `A as ${format}\n${steps}`)
  const given = sampleOf(only(DATA, ['A']), false)
  const expected = expectedOf(given, c)
  agreeOnStages(c, bind(given, c), expected)
  await agreeOnDevice(createCpuDevice(), c, bind(given, c), expected)
})
