/** Default schedules of sums: what one thread would do alone is shared out where that leaves it less to do. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'

const parallel = (target: string, iterate: string): string => {
  const text = `
kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis x = fused(i, j)
  buffer A: f32[i, j] in
  buffer T: f32[${target}] out
  iterate sums ${iterate}
}`
  return print2(parseProgram(text).kernel().compilation.parallel().loops, { bodyOnly: true })
}

test('data-dependent elements stay with one thread: partial results would have as many', () => {
  expect(parallel('jd', '[x] as R { T[j] += A[i, j] }')).toBe(`\
fill T = 0
for x in 0..j_count  reduce
  T[j_indices[x]] += A[x]`)
})

test('threads share a sum', () => {
  expect(parallel('', '[x] as R { T[] += A[i, j] }')).toBe(`\
for x_share_block in 0..16  @block.x
  for x_share_thread in 0..64  @thread.x
    for x_part in 0..ceildiv(j_count, 1024)  reduce  where x_part * 1024 + (x_share_block * 64 + x_share_thread) < j_count
      T_partial[x_share_block * 64 + x_share_thread] += A[x_part * 1024 + (x_share_block * 64 + x_share_thread)]  init
for x_share_2 (T_partial.x_share) in 0..1024  reduce
  T[] += T_partial[x_share_2]  init`)
})

test('each thread sums a row, and one thread adds the sums', () => {
  expect(parallel('', '[i, j] as RR { T[] += A[i, j] }')).toBe(`\
for i_block in 0..ceildiv(m, 64)  @block.x
  for i_thread in 0..64  @thread.x  where i_block * 64 + i_thread < m
    for j in 0..j_indptr[i_block * 64 + i_thread + 1] - j_indptr[i_block * 64 + i_thread]  reduce
      T_partial[i_block * 64 + i_thread] += A[j_indptr[i_block * 64 + i_thread] + j]  init
for i_2 (T_partial.i) in 0..m  reduce
  T[] += T_partial[i_2]  init`)
})

const several = (body: string) =>
  parseProgram(`
kernel several(m: size) {
  axis x = dense_fixed(m)
  buffer D: f32[x] out
  buffer T: f32[] out
  iterate several [v in x] as R { ${body} }
}`).kernel()

test.each(['D[v] += 1.0; T[] min= f32(v)', 'T[] min= f32(v); D[v] += 1.0'])(
  'reductions that combine into different elements get separate nests: %s',
  (body) => {
    const text = print2(several(body).compilation.parallel().loops, { bodyOnly: true })
    const nests = text.split(/^(?=for )/m).slice(1)
    const bound = nests.filter((n) => n.includes('@block.x'))
    expect(bound.length).toBeGreaterThan(1)
    // Threads share the minimum: none of them updates the one element.
    for (const n of bound) expect(n).not.toMatch(/^ +T\[\] min=/m)
    expect(() => several(body).combine('D')).toThrow(
      'iterations of v also share elements of T (step 1: combine D)',
    )
  },
)
