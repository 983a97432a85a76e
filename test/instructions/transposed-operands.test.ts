/** Texts of instructions count on how tiles of declared memories lie: a copy that lies the other way round is no operand. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'

const program = (first: string, instr: string): string => `
import "sparsetile/kernels/instructions/bulk.spt"
import "sparsetile/kernels/instructions/copies.spt"
import "sparsetile/kernels/instructions/wgmma.spt"
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f16[${first}] in
  buffer B: f16[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { C[i, j] += f32(A[${first}]) * f32(B[p, j]) }
}
schedule product.gpu() {
  require m % 64 == 0
  require n % 64 == 0
  require k % 64 == 0
  split i by 64 -> (io, ii)
  split j by 64 -> (jo, ji)
  split p by 64 -> (po, pi)
  reorder (io, jo, po, ii, ji, pi)
  bind io to block.x, jo to block.y
  cache_write C at jo in wgmma_c(64)
  cache_read A at po in swizzled(f16, 64, 64) -> As
  cache_read B at po in swizzled(f16, 64, 64) -> Bs
  tensorize As.${first === 'p, i' ? 'pi' : 'ii'} with bulk(f16, 64, 64)
  tensorize Bs.pi with bulk(f16, 64, 64)
  tensorize sum.ii with ${instr}
  pipeline po by 2
}`

const emitted = async (first: string, instr: string): Promise<() => unknown> => {
  const kernel = (await load(program(first, instr))).kernel('product')
  return () => kernel.schedule('gpu').emit('cuda')
}

test.each([
  ['i, p', 'wgmma(f16, 64, 64)'],
  ['p, i', 'wgmma_rows(f16, 64, 64)'],
])('A[%s] is an operand of %s', async (first, instr) => {
  expect(await emitted(first, instr)).not.toThrow()
})

test.each([
  ['p, i', 'wgmma(f16, 64, 64)'],
  ['i, p', 'wgmma_rows(f16, 64, 64)'],
])('A[%s] is none of %s', async (first, instr) => {
  const { code, message } = refusal(await emitted(first, instr))
  expect(code).toBe('schedule/not-matching')
  expect(message).toMatch(
    /does not go along the dimension of As that it has in operand A, a tile of swizzled/,
  )
})
