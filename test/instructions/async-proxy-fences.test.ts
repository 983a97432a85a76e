/** What is read through the async proxy is written through it, or with a fence: other copies are refused. */
import { expect, test } from 'vitest'
import { Facts } from '../../src/analysis/integers/facts.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import { checkFences } from '../../src/lower/instructions/instruction-selection.ts'
import { load } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'
import { at, reduce, store } from '../support/stage2-builders.ts'

test.each([
  ['gemm-f16', 'gemm<f16>', 'wgmma'],
  ['gemm-f16', 'gemm<bf16>', 'wgmma'],
])('%s: %s.%s without the fence is rejected', async (file, kernel, schedule) => {
  const program = await load(new URL(`../../kernels/${file}.spt`, import.meta.url).pathname)
  const k = program.kernel(kernel)
  expect(k.schedule(schedule).emit('cuda')[0]!.text).toContain('fence.proxy.async')
  const plain = k.steps(schedule).filter((s) => !JSON.stringify(s).includes('"name":"cp_async_by_fenced'))
  const said = refusal(() => k.apply(plain).emit('cuda'))
  expect(said.code).toBe('schedule/unfenced')
  expect(said.message).toMatch(/^wgmma\(.* through the async proxy, and (As|Bs) fills (As|Bs) without/)
})

test('statements that fill shared memory are rejected', async () => {
  const program = await load(new URL('../../kernels/gemm-f16.spt', import.meta.url).pathname)
  const { loops } = program.kernel('gemm<f16>').schedule('wgmma').compilation
  const buffers = new Map(loops.buffers.map((b) => [b.name, b]))
  walkStmts(loops.body, (s) => {
    if (s.kind === 'alloc') buffers.set(s.buffer.name, s.buffer)
  })
  const facts = new Facts({ sizes: loops.facts })
  const check = (more: readonly Stmt[]) => () => checkFences([...loops.body, ...more], buffers, facts)
  expect(check([])).not.toThrow()
  const to = at('As', [0, 0], 'f16')
  for (const fill of [store(to, 1), reduce(to, '+', 1)])
    expect(check([fill])).toThrow('a store fills As without a fence')
})
