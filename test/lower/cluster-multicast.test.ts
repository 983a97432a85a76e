/** What clusters of blocks become on CUDA, and where they are no use. */
import { expect, test } from 'vitest'
import { add, type Expr, int, mul, search } from '../../src/ir/expressions/expr.ts'
import { blockInvariantCopies } from '../../src/lower/pipelining/cluster-multicast.ts'
import { load } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'
import { at, expr, loop, store } from '../support/stage2-builders.ts'

const GEMM = new URL('../../kernels/gemm-f16.spt', import.meta.url).pathname

test('one block of a cluster loads the tile for all blocks, and the launch has a cluster size', async () => {
  const kernel = (await load(GEMM)).kernel('gemm<f16>').schedule('multicast')
  const [module] = kernel.emit('cuda')
  expect(module!.entries.map((e) => e.cluster)).toEqual([[2, 1, 1]])
  const copies = module!.text.split('\n').filter((l) => l.includes('cp.async.bulk.tensor'))
  const [many, alone] = [true, false].map((m) => copies.filter((c) => c.includes('multicast') === m))
  expect(many!.length).toBe(alone!.length)
  for (const c of many!) expect(c).toContain('&B_matrix')
  for (const c of alone!) expect(c).toContain('&A_matrix')
  // Blocks meet once; in the loop they only say what they do not need any more.
  expect(module!.text.match(/barrier\.cluster\.wait/g)).toHaveLength(1)
})

const PLAIN = `kernel copy(m: size) {
  axis i = dense_fixed(m)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate body [i] as S { y[i] = x[i] }
}
schedule copy.gpu {
  require m % 64 == 0
  split i by 32 -> (io, ii)
  bind io to block.x, ii to thread.x
  cluster io by 2
}`

test('blocks without common copies form no cluster', async () => {
  const kernel = (await load(PLAIN)).kernel().schedule('gpu')
  expect(refusal(() => kernel.emit('cuda'))).toMatchObject({ code: 'schedule/idle-cluster' })
})

test('blocks that may run a loop differently have no copies in common', () => {
  const copiesIn = (extent: Expr) => {
    const copy = loop('c', 4, [store(at('tile', ['c']), at('A', [add(mul(expr('p'), int(4)), expr('c'))]))])
    const tiles = loop('p', extent, [copy])
    const top = loop('b', 'n', [tiles], { mode: { kind: 'bind', to: 'block.x', cluster: 2 } })
    return blockInvariantCopies([copy], tiles, top, new Set(['kept']))?.includes(copy)
  }
  expect(copiesIn(expr('q'))).toBe(true)
  expect(copiesIn(expr('b'))).toBeUndefined()
  expect(copiesIn(at('given', [0], 'i32'))).toBe(true)
  expect(copiesIn(at('kept', [0], 'i32'))).toBeUndefined()
  expect(copiesIn(search('lower', 'kept', int(0), int(4), expr('q')))).toBeUndefined()
})
