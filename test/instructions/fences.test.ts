/** What is read through the async proxy is written through it, or with a fence: other copies are refused. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'

test.each([
  ['gemm-f16', 'gemm_f16', 'wgmma'],
  ['gemm-f16', 'gemm_bf16', 'wgmma'],
])('%s: %s.%s without the fence is refused', async (file, kernel, schedule) => {
  const program = await load(new URL(`../../kernels/${file}.spt`, import.meta.url).pathname)
  const k = program.kernel(kernel)
  expect(k.schedule(schedule).emit('cuda')[0]!.text).toContain('fence.proxy.async')
  const plain = k.steps(schedule).filter((s) => !JSON.stringify(s).includes('"name":"cp_async_fenced'))
  const said = refusal(() => k.apply(plain).emit('cuda'))
  expect(said.code).toBe('schedule/unfenced')
  expect(said.message).toMatch(/^wgmma\(.* through the async proxy, and (As|Bs) fills (As|Bs) without/)
})
