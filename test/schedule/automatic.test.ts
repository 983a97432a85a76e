/** Default schedules of sums: what one thread would do alone is shared out where that leaves it less to do. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { print2 } from '../../src/ir/print2.ts'

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

test('elements that only the data know stay with one thread: partial results would have as many', () => {
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

test('a thread sums a row, and one their sums', () => {
  expect(parallel('', '[i, j] as RR { T[] += A[i, j] }')).toBe(`\
for i_block in 0..ceildiv(m, 64)  @block.x
  for i_thread in 0..64  @thread.x  where i_block * 64 + i_thread < m
    for j in 0..j_indptr[i_block * 64 + i_thread + 1] - j_indptr[i_block * 64 + i_thread]  reduce
      T_partial[i_block * 64 + i_thread] += A[j_indptr[i_block * 64 + i_thread] + j]  init
for i_2 (T_partial.i) in 0..m  reduce
  T[] += T_partial[i_2]  init`)
})
