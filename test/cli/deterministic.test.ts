/** `--deterministic`, and `&deterministic` of imports: schedules with sums in no fixed order are rejected, and not selected. */
import { expect, test } from 'vitest'
import { compilePlan, planRequest } from '../../src/bundler/plan-request.ts'
import { spt } from './support.ts'

const SPMM = 'kernels/spmm.spt'

test.each([
  ['emit', SPMM, '--target', 'wgsl', '--kernel', 'spmm', '--schedule', 'hyb(2, 3)'],
  ['emit', SPMM, '--target', 'plan', '--device', 'webgpu', '--kernel', 'spmm', '--schedule', 'hyb(2, 3)'],
])('spt %s rejects atomic updates of floats', async (...argv) => {
  expect((await spt(argv)).code).toBe(0)
  const { code, err } = await spt([...argv, '--deterministic'])
  expect([code, err]).toEqual([1, expect.stringContaining('choose/unordered-sum')])
  const ordered = argv.map((a) => a.replace('hyb(', 'hyb_combined('))
  expect((await spt([...ordered, '--deterministic'])).code).toBe(0)
})

test('spt run on the cpu has no other sums', async () => {
  const argv = [
    'run',
    SPMM,
    '--kernel',
    'spmm',
    '--bind',
    'A=data/cora.mtx',
    '--size',
    'd=2',
    '--deterministic',
  ]
  expect((await spt(argv)).code).toBe(0)
})

test('imports', async () => {
  const request = planRequest('kernels/spmm.spt?plan&kernel=spmm&schedule=hyb(2,3)&deterministic')
  await expect(compilePlan(request)).rejects.toThrow('choose/unordered-sum')
  expect((await compilePlan({ ...request, target: 'cpu' })).plan.kernel).toBe('spmm')
})
