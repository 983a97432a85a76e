/** Copies of boxes that count their bytes: what is printed, and what cannot be copied so. */
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Kernel } from '../../src/node.ts'
import { DECLARED } from '../support/asynchronous.ts'
import { refusal } from '../support/refusal.ts'

// A's rows are longer than what is read of them.
const KERNELS = `
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(8)
  axis q = dense_fixed(10)
  buffer A: f32[i, q] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
kernel moved() {
  axis t = dense_fixed(2)
  axis i = dense_fixed(4)
  axis j = dense_fixed(4)
  axis w = dense_fixed(12)
  buffer B: f32[i, w] in
  buffer C: f32[t, i, j] out
  iterate copy [t, i, j] as SSS { C[t, i, j] = B[i, t * 6 + j] }
}
kernel apart() {
  axis t = dense_fixed(2)
  axis i = dense_fixed(4)
  axis j = dense_fixed(4)
  buffer B: f32[i, t, j] in
  buffer C: f32[t, i, j] out
  iterate copy [t, i, j] as SSS { C[t, i, j] = B[i, t, j] }
}
kernel blocks(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis bi = dense_fixed(4)
  axis bk = dense_fixed(4)
  axis f = dense_fixed(d)
  buffer A: f32[i, j, bi, bk] in
  buffer B: f32[jd, bk, f] in
  buffer C: f32[i, bi, f] out
  iterate sum [i, j, bi, bk, f] as SRSRS { C[i, bi, f] += A[i, j, bi, bk] * B[j, bk, f] }
}`

const scheduled = (kernel: string, steps: string): Kernel =>
  parseProgram(`${DECLARED}${KERNELS}\nschedule ${kernel}.tested {${steps}\n}`)
    .kernel(kernel)
    .schedule('tested')

const ROWS = `
  require d % 8 == 0
  split bi by 2 -> (wi, ir)
  split f by 8 -> (fo, fi)
  split fi by 4 -> (jt, jr)`

/** A block of A and the rows of B that it meets in a round. */
const BLOCKS = `${ROWS}
  reorder (i, fo, wi, jr, j, jt, ir, bk)
  bind i to block.y, fo to block.x, wi to thread.y, jr to thread.x
  cache_write C at jr in register
  cache_read A at j in tile -> As
  cache_read B at j in tile -> Bs
  split As.wi by 2 -> (ac, ar)
  split Bs.bk by 2 -> (br, bh)
  split Bs.jt by 4 -> (bc, bv)
  reorder (br, bc, bh, bv)
  tensorize ar with bulk
  tensorize bh with bulk
  pipeline j by 3`

const TILED = `
  require m % 4 == 0
  require n % 8 == 0
  split i by 4 -> (io, ii)
  split ii by 2 -> (wi, ir)
  split j by 8 -> (jo, ji)
  split ji by 4 -> (jt, jr)
  split p by 4 -> (po, pr)
  reorder (io, jo, wi, jr, po, jt, ir, pr)
  bind io to block.y, jo to block.x, wi to thread.y, jr to thread.x
  cache_write C at jr in register`

const BOXES_OF_B = `
  split Bs.pr by 2 -> (pc, pv)
  split Bs.jt by 4 -> (jc, jv)
  reorder (pc, jc, pv, jv)
  tensorize pv with bulk`

test('barriers, descriptors as arguments, one thread expects the bytes, all threads wait', () => {
  const { text } = scheduled('blocks', BLOCKS).emit('cuda')[0]!
  const file = new URL('bulk.cu', import.meta.url)
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, text)
  expect(text).toBe(readFileSync(file, 'utf8'))
})

describe('is rejected', () => {
  test('if rows do not begin at multiples of 16 bytes', () => {
    const d = refusal(() =>
      scheduled(
        'product',
        `${TILED}\ncache_read A at po in tile -> As\nsplit As.wi by 2 -> (ac, ar)\ntensorize ar with bulk`,
      ),
    )
    expect([d.code, d.message, d.hint]).toEqual([
      'schedule/not-aligned',
      'bulk: rows of operand S begin at multiples of 16 bytes, and those of A have 10 elements (step 13: tensorize ar with bulk)',
      'require sizes that are multiples of the tile',
    ])
    expect(d.span).toBeDefined()
  })

  test('if boxes do not begin at multiples of 16 bytes', () => {
    const steps = 'cache_read B at t in tile -> Bs\nsplit Bs.i by 2 -> (br, bh)\ntensorize bh with bulk'
    const d = refusal(() => scheduled('moved', `bind t to block.x\n${steps}`))
    expect([d.code, d.message, d.expected]).toEqual([
      'schedule/not-aligned',
      'bulk: boxes of operand S begin at multiples of 16 bytes, and this one at column t * 6 of B (step 4: tensorize bh with bulk)',
      'a column that is a multiple of 4',
    ])
  })

  test('if another dimension of the buffer is between rows and columns', () => {
    const steps = 'cache_read B at t in tile -> Bs\nsplit Bs.i by 2 -> (br, bh)\ntensorize bh with bulk'
    const d = refusal(() => scheduled('apart', `bind t to block.x\n${steps}`))
    expect([d.code, d.message, d.expected]).toEqual([
      'schedule/not-matching',
      'bulk: bh does not go along a dimension of B alone, as operand S does (step 4: tensorize bh with bulk)',
      'neighbouring rows and columns of B',
    ])
  })

  test('if boxes do not fit, without a requirement', () => {
    const any = TILED.replace('require n % 8 == 0', '')
    const d = refusal(() => scheduled('product', `${any}\ncache_read B at po in tile -> Bs${BOXES_OF_B}`))
    expect([d.code, d.expected, d.hint]).toEqual([
      'schedule/guarded',
      'loops without conditions',
      'require sizes that are multiples of the tile (`require n % 16 == 0`), or cache the operand with padding',
    ])
  })

  test('into another memory', () => {
    const d = refusal(() => scheduled('product', `${TILED}\ncache_read B at po in shared -> Bs${BOXES_OF_B}`))
    expect([d.code, d.hint]).toEqual(['schedule/wrong-memory', 'cache Bs in tile first'])
  })

  test('in iterations with different numbers of bytes', () => {
    const k = scheduled(
      'blocks',
      `${ROWS}
      split j by 2 -> (jo, js)
      reorder (i, fo, wi, jr, jo, js, jt, ir, bk)
      bind i to block.y, fo to block.x, wi to thread.y, jr to thread.x
      cache_write C at jr in register
      cache_read A at jo in tile -> As
      split As.wi by 2 -> (ac, ar)
      tensorize ar with bulk
      pipeline jo by 2`,
    )
    const d = refusal(() => k.emit('cuda'))
    expect([d.code, d.message, d.expected, d.hint]).toEqual([
      'schedule/counted-copies',
      'bulk counts the copied bytes, and some rounds copy more than others',
      'copies of the same number of bytes in every iteration, distributed over all threads',
      'require that the tiles divide the sizes',
    ])
    expect(d.span).toBeDefined()
  })

  test('on targets without an implementation', () => {
    const d = refusal(() => scheduled('blocks', BLOCKS).emit('wgsl'))
    expect(d.code).toBe('emit/no-instruction')
  })
})
