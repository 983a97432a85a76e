/** Spatial loops outside of reduction loops: they still run over different elements, or combine as well. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'

const kernel = parseProgram(`
kernel columns(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_fixed(i, n, 4)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer Y: f32[jd, f] out
  iterate sum [i, j, f] as RSS {
    Y[j, f] += A[i, j]
  }
}`).kernel()

const loops = (k: typeof kernel): string => print2(k.compilation.loops, { bodyOnly: true })

test('columns of different rows conflict', () => {
  const moved = kernel.split('j', 2, ['jo', 'ji']).reorder('jo', 'ji', 'i')
  expect(loops(moved)).toBe(`\
fill Y = 0
for jo in 0..2  reduce
  for ji in 0..2  reduce
    for i in 0..m  reduce  where j_indices[i * 4 + (jo * 2 + ji)] < n
      for f in 0..d
        Y[j_indices[i * 4 + (jo * 2 + ji)], f] += A[i * 4 + (jo * 2 + ji)]`)
  expect(() => moved.bind({ jo: 'block.x' })).toThrow(SptError)
  expect(() => kernel.bind({ j: 'thread.x' }).reorder('j', 'i')).toThrow(/already bound/)
})

test('columns with their own dimension do not', () => {
  expect(loops(kernel.reorder('f', 'i', 'j').bind({ f: 'block.x' }))).toBe(`\
fill Y = 0
for f in 0..d  @block.x
  for i in 0..m  reduce
    for j in 0..4  where j_indices[i * 4 + j] < n
      Y[j_indices[i * 4 + j], f] += A[i * 4 + j]`)
})

test('loops over partial results keep such loops inside', () => {
  expect(loops(kernel.combine('Y'))).toContain(`\
for f_2 (Y_partial.f) in 0..d
  for i_2 (Y_partial.i) in 0..m  reduce
    for j_2 (Y_partial.j) in 0..4  where j_indices[i_2 * 4 + j_2] < n
      Y[j_indices[i_2 * 4 + j_2], f_2] += Y_partial`)
})

test.each(['x / 2', 'x / 3', 'x / 65536', '(x / 2) / 2', '(x / 2) / 65536'])(
  'only existing partial results are added: C[%s]',
  async (index) => {
    const program = parseProgram(`kernel k(m: size, n: size, c: size) {
  axis a = dense_fixed(m) axis x = dense_fixed(n) axis y = dense_fixed(c)
  buffer B: i32[a] in buffer C: i32[y] out
  iterate it [a, x] as RR { C[${index}] max= x - B[a] }
}`)
    const compiled = await program.kernel().combine('C').build(createCpuDevice())
    for (const n of [0, 4, 7]) {
      const B = Int32Array.of(30, 20)
      // Rows beyond the last partial result: their first would be at 65536 times their number.
      const prepared = await compiled.bind({ B, m: 2, n, c: 33000 })
      expect((await prepared.verify()).problems).toEqual([])
    }
  },
)
