/** Tiles of what lists gather, and one loop over all lists that a fixed grid takes in turn. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { printExpr } from '../../src/ir/print/print-stage2.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { refusal as diagnosticOf } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { KERNELS, type Live, live } from './live-gen.ts'
import { asWritten, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

const TILED = `
schedule product.tiled {
  A as panels(8, 4) live in place
  split mul.j by 4 -> (jb, jt)
  split mul.ii by 2 -> (iw, ir)
  reorder (mul.io, jb, iw, jt, mul.go, mul.ji, ir)
  bind mul.io to block.x, jb to block.y, iw to thread.y, jt to thread.x
  cache_write C at jt in register
  cache_read A at mul.go in shared padded 0 -> As
  cache_read B at mul.go in shared padded 0 -> Bs
  pipeline mul.go by 2
}
schedule product.dealt {
  A as panels(8, 4) live in place
  fuse (mul.io, mul.go) -> g
  atomic C
  split g by 3 -> (round, b)
  split mul.j by 4 -> (jb, jt)
  split mul.ii by 2 -> (iw, ir)
  reorder (b, jb, round, iw, jt, mul.ji, ir)
  bind b to block.x, jb to block.y, iw to thread.y, jt to thread.x
  cache_read B at round in shared padded 0 -> Bs
}
schedule product.direct {
  A as panels(8, 4) live in place
  fuse (mul.io, mul.go) -> g
  atomic C
  split mul.j by 4 -> (jb, jt)
  reorder (g, jb, mul.ii, jt, mul.ji)
  bind g to block.x, jb to block.y, mul.ii to thread.y, jt to thread.x
}`

test.each(['tiled', 'dealt', 'direct'])(
  'tiles of gathered columns equal loops over them, and nvcc compiles them: %s',
  async (name) => {
    const products = (n: readonly number[]): Live => live(new Choices(n), 'panels', 'left')
    const c = parseProgram(`${products([]).text}${TILED}`)
      .kernel()
      .schedule(name).compilation
    const parallel = c.parallel()
    let gpu = false
    if (!noNvcc) expect(compileCuda(parallel.texts('cuda').map((t) => t.text))).toBe('')
    await fc.assert(
      fc.asyncProperty(numbers, (n) => {
        const s = products(n)
        gpu = !gpu
        return told([s.text, s.sizes], async () => {
          if (!gpu) return agreeOnAll(c, s.inputs)
          const { bound, expected } = asWritten(c, s.inputs)
          await agreeOnDevice(webgpu, parallel, bound, expected)
        })
      }),
      parameters(name === 'tiled' ? 16 : 8),
    )
  },
  3_600_000,
)

test('a persistent grid processes all groups, including the last', () => {
  const s = live(new Choices([]), 'panels', 'left')
  const kernel = parseProgram(`${s.text}${TILED}`).kernel()
  const dealt = kernel.schedule('dealt')
  expect(dealt.show(2)).toContain('for round in 0..ceildiv(go_offsets[ceildiv(m, 8)], 3)')
  const last = dealt.compilation.parallel().plan.steps.findLast((x) => x.kind === 'launch')!
  expect(last.kind === 'launch' && last.grid[0]).toMatchObject({ kind: 'const', value: 3 })
  const conditions: string[] = []
  let loops = 0
  if (last.kind === 'launch')
    walkStmts(last.body, (x) => {
      if (x.kind === 'if') conditions.push(printExpr(x.cond))
      if (x.kind === 'for' && x.name === 'round') loops++
    })
  expect(loops).toBe(1)
  // Rounds end there: nothing is asked in them.
  expect(conditions.filter((x) => x.includes('< go_offsets'))).toEqual([])
  const all = kernel.schedule('direct').show(2)
  expect(all).toContain('for g in 0..ceildiv(m, 8) * ceildiv(k, 4)')
  expect(all).toContain('where g < go_offsets[ceildiv(m, 8)]')
})

test('lists under two axes, in one loop', async () => {
  const text = `format deep(h, s) over (i, j) {
  axis ao = dense_fixed(ceildiv(i, 3 * h))
  axis io = dense_fixed(ao, 3)
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, s)
  axis ii = dense_fixed(jo, h)
  map (i, j) -> (i / h / 3, i / h % 3, rank(j by i / h / 3, i / h % 3) / s, j, i % h)
  inverse (ao, io, go, jo, ii) -> ((ao * 3 + io) * h + ii, jo)
}
${KERNELS.left}
schedule product.s(h = 2, s = 2) { A as deep(h, s) live in place fuse (mul.ao, mul.io, mul.go) -> g }
schedule product.two { A as deep(2, 2) live in place fuse (mul.io, mul.go) }`
  const kernel = parseProgram(text).kernel()
  const { code, message, hint } = diagnosticOf(() => kernel.schedule('two'))
  expect([code, message, hint]).toEqual([
    'schedule/not-a-chain',
    'axis go is not stored under axis io',
    'go is counted for each of ao, io: fuse (ao, io, go)',
  ])
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c, 'panels', 'left')
      const { compilation } = kernel.schedule('s', c.pick([1, 2, 4]), c.pick([1, 3]))
      return told([s.text, s.sizes], () => agreeOnAll(compilation, s.inputs))
    }),
    parameters(10),
  )
}, 3_600_000)
