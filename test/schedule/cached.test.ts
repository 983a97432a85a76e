/** Steps that meet in one nest, in an order that only works where each leaves the other enough. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { printBody } from '../../src/ir/print2.ts'
import { columnSplit } from '../../src/schedule/samples.ts'
import { replay } from '../../src/schedule/state.ts'

test('partial results of a split row are in registers, tail and all, and nowhere else', () => {
  const { kernel } = replay(columnSplit, [
    { kind: 'rfactor', loop: 'ji', into: 'yp' },
    { kind: 'cache_write', buffer: 'yp', at: 'i', scope: 'register', into: 'own' },
  ])
  expect(printBody(kernel.body)).toBe(`\
for i in 0..m
  alloc own: f32[32] register
  for jo in 0..ceildiv(j_indptr[i + 1] - j_indptr[i], 32)  reduce
    for ji in 0..32  where jo * 32 + ji < j_indptr[i + 1] - j_indptr[i]
      own[ji] += A[j_indptr[i] + (jo * 32 + ji)]  init
  for ji_2 (yp.ji) in 0..32  reduce
    y[i] += own[ji_2]  init`)
  expect(kernel.buffers.map((b) => b.name)).not.toContain('yp')
})

test('what threads read of neighbouring rows they copy together, row by row', () => {
  const { loops } = parseProgram(`kernel rows(m: size) {
    axis i = dense_fixed(m)
    axis r = dense_fixed(4)
    axis f = dense_fixed(8)
    buffer X: i32[i, f] in
    buffer y: i32[i, r] out
    iterate sum [i, r, f] as SSR { y[i, r] += X[i, f] }
  }
  schedule rows.tiles {
    split i by 8 -> (io, it)
    bind io to block.x, it to thread.x
    cache_read X at it in shared -> Xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain(`    for it_2 (Xs.it) in 0..8  where io * 8 + it_2 < m
      for f_2 (Xs.f) in 0..8
        Xs[it_2, f_2] = X[io * 8 + it_2, f_2]
`)
})

test('only the condition that padding stands for is left out', () => {
  const { loops } = parseProgram(`kernel twice(m: size, n: size, d: size) {
    axis i = dense_fixed(m)
    axis c = dense_fixed(n)
    axis f = dense_fixed(d)
    buffer x: i32[c] in
    buffer y: i32[i] out
    iterate sum [i, c, f] as SRR { y[i] += x[c] }
  }
  schedule twice.tiles {
    split c by 3 -> (co, ci)
    split f by 3 -> (fo, fi)
    reorder (i, co, fo, ci, fi)
    cache_write y at i in register -> own
    cache_read x at fo in shared padded 0 -> xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain(`      for ci in 0..3  reduce
        for fi in 0..3  reduce  where fo * 3 + fi < d
          own[0] += xs[ci]  init`)
})
