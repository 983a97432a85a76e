/** `require` takes guards away that facts about sizes decide: over loops, and over validated coordinates. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { dense } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'

const TEXT = `
format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
kernel product(m: size, n: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}`

const kernel = parseProgram(TEXT).kernel().as('A', 'blocks', 4)
const guards = (k: typeof kernel): number =>
  print2(k.compilation.loops, { bodyOnly: true }).match(/ (<) [mn]/g)?.length ?? 0

test('rows and columns of full blocks', () => {
  expect(guards(kernel)).toBe(2)
  const rows = kernel.require('m', { multiple: 8 })
  expect(guards(rows)).toBe(1)
  expect(guards(rows.require('n', { multiple: 4 }))).toBe(0)
})

test('sizes that blocks do not divide keep their guards', () => {
  expect(guards(kernel.require('m', { multiple: 6 }).require('n', { multiple: 2 }))).toBe(2)
})

test('a tile that is split further stays unguarded', () => {
  const split = kernel.require('m', { multiple: 4 }).split('ii', 2)
  expect(guards(split)).toBe(1)
  expect(guards(kernel.split('ii', 2).require('m', { multiple: 4 }))).toBe(1)
})

test('a write that no size permits is reported as lost', async () => {
  const cpu = createCpuDevice()
  const compiled = await parseProgram(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis c = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y: f32[c] out
    iterate s [i] as R { Y[7] += X[i] }
  }`)
    .kernel()
    .require('n', { equal: 4 })
    .build(cpu)
  const X = dense([2], Float32Array.of(1, 2))
  await expect(compiled({ X, n: 4 })).rejects.toThrow('elements of Y that do not exist')
  compiled.release()
})
