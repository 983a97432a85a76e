/** Explanations of prepared kernels: what the device tells, what is measured, and that nothing is lost by it. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { fakeDevice } from '../runtime/cuda-fake.ts'

const program = await load(`
kernel two(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer T: f32[i] local
  buffer Y: f32[i] inout
  iterate a [i] as S { T[i] = X[i] * 2 }
  iterate b [i] as S { Y[i] = Y[i] + T[i] }
}
schedule two.gpu {
  split a.i by 64 -> (ao, ai)
  split b.i by 64 -> (bo, bi)
  bind ao to block.x, ai to thread.x
  bind bo to block.x, bi to thread.x
}
schedule two.auto choose {
  when (cuda) gpu
  otherwise gpu
}`)
const n = 200
const inputs = { tensors: { X: new Float32Array(n).fill(3), Y: new Float32Array(n).fill(1) }, params: { n } }

test('cuda: registers, local memory and occupancy come from the driver', async () => {
  const { driver, device } = fakeDevice()
  for (const name of ['two_0', 'two_1']) driver.kernels.set(name, () => undefined)
  driver.attributes.set(4, 40).set(3, 16).set(1, 512)
  const kernel = program.kernel().schedule('gpu')
  const compiled = await kernel.build(device, { auto: false })
  const prepared = await compiled.bind(...flatInputs(inputs))
  const e = await prepared.explain()
  expect([e.device, e.deviceName, e.launches.length]).toEqual(['cuda', 'fake', 2])
  for (const l of e.launches) {
    expect([l.blocks, l.threads]).toEqual([4, 64])
    expect(l.resources).toEqual({ registers: 40, shared: 512, local: 16 })
    expect(l.occupancy).toEqual({ blocks: 1, warps: 2, maxWarps: 64, limitedBy: 'grid', waves: 1 })
    expect(l.time!.samples).toBeGreaterThan(0)
    // The ceilings of this chip are not known.
    expect(l.roof).toBeNull()
  }
  expect(e.launches.map((l) => l.bytes.compulsory)).toEqual([8 * n, 12 * n])
  expect(e.total.bytes.compulsory).toBe(20 * n)
  await device.dispose()
})

test('explain does not change inputs', async () => {
  const device = createCpuDevice()
  const compiled = await program.kernel().schedule('gpu').build(device, { auto: false })
  const prepared = await compiled.bind(...flatInputs(inputs))
  const e = await prepared.explain()
  expect(e.time!.median).toBeGreaterThan(0)
  expect(e.achieved).toMatchObject({ bandwidthFraction: null, flopsFraction: null })
  expect(e.launches.map((l) => [l.resources, l.occupancy])).toEqual([
    [null, null],
    [null, null],
  ])
  await prepared.run()
  expect([...(await prepared.get('Y')).values!]).toEqual(new Array(n).fill(7))
})

test('without times nothing runs, and plain data are returned', async () => {
  const compiled = await program.kernel().schedule('gpu').build(createCpuDevice(), { auto: false })
  const prepared = await compiled.bind(...flatInputs(inputs))
  const e = await prepared.explain({ time: false })
  expect([e.time, e.achieved, e.launches[0]!.time]).toEqual([null, null, null])
  expect(JSON.parse(JSON.stringify(e))).toEqual(e)
  expect([...(await prepared.get('Y')).values!]).toEqual(new Array(n).fill(1))
})

test('of a dispatch, the selected schedule is explained', async () => {
  const compiled = await program.kernel().build(createCpuDevice())
  const prepared = await compiled.bind(...flatInputs(inputs))
  expect((await prepared.explain({ time: false })).launches.map((l) => l.threads)).toEqual([64, 64])
})
