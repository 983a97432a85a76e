/** Steps that meet in one nest, in an order that only works where each leaves the other enough. */
import { expect, test } from 'vitest'
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
