/** What runs when nobody asks for a schedule is legal, on the device that it runs on. */
import { afterAll, expect, test } from 'vitest'
import { type Device, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Folder, spt } from './support.ts'

const RED = `kernel red(n: size) {
  axis i = dense_fixed(n)
  buffer V: f32[i] in
  buffer s: f32[] out
  buffer lo: f32[] out
  buffer any: bool[] out
  iterate a [i] as R { s[] += V[i]  lo[] min= V[i]  any[] or= V[i] > 2.5 }
}
schedule red.cpu { combine s }
schedule red.gpu { combine s }
`
const folder = new Folder()
const red = folder.file('red.spt', RED)
afterAll(() => folder.remove())

test('a default schedule that is rejected is skipped with the reason', async () => {
  const run = ['run', red, '--device', 'cpu', '--size', 'n=100', '--verify']
  const { code, out, err } = await spt(run)
  expect([code, err]).toEqual([
    0,
    'note: schedule cpu is left out: i holds 3 statements (step 1: combine s) (schedule/not-one-reduction)\n',
  ])
  expect(out).toMatch(/^ok: agrees with the reference(.|\n)*schedule {2}default: selected/)
  const asked = await spt([...run, '--schedule', 'cpu'])
  expect([asked.code, asked.err.split('\n')[0]]).toEqual([
    1,
    'error[schedule/not-one-reduction]: i holds 3 statements (step 1: combine s)',
  ])
  const emitted = await spt(['emit', red, '--target', 'wgsl'])
  expect([emitted.code, emitted.err]).toEqual([0, expect.stringMatching(/^note: schedule gpu is left out/)])
})

const MUL = `kernel mul(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}
schedule mul.gpu { split i by 32 -> (io, ii)  bind io to block.x, ii to thread.x }
`

test('a schedule `gpu` is not compiled for a software adapter unless named', async () => {
  const run = ['--device', 'webgpu', '--size', 'm=9', '--size', 'n=8']
  const mul = folder.file('mul.spt', MUL)
  for (const command of ['run', 'explain']) {
    const { code, out } = await spt([command, mul, ...run])
    expect(code).toBe(0)
    const taken = out.includes('SwiftShader')
      ? /schedule +parallel\(\): on a software adapter/
      : /schedule +gpu/
    expect(out).toMatch(taken)
    expect((await spt([command, mul, ...run, '--schedule', 'gpu'])).out).toMatch(/schedule +gpu/)
  }
})

test("schedules that exceed the device's threads are skipped", async () => {
  const device = await createNodeWebGpu()
  const limits = { ...device.limits, maxThreadsPerBlock: 16, maxBlockDim: [16, 16, 16] as const }
  const small = new Proxy(device, {
    get: (of, key) => {
      if (key === 'limits') return limits
      const value: unknown = Reflect.get(of, key, of)
      return typeof value === 'function' ? value.bind(of) : value
    },
  }) as Device
  const compiled = await (await load(RED)).kernel().build(small)
  const prepared = await compiled.bind({ V: Float32Array.of(1, 2, 3) })
  expect((await prepared.verify()).problems).toEqual([])
  await device.dispose()
})
