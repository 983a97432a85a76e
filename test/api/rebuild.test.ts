/** Prepared kernels on a new device after the old one was lost. */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { type Binding, coords, type Device, dense, devices, load } from '../../src/node.ts'
import { findAdapter } from '../../src/runtime/webgpu/node.ts'
import { createWebGpuDevice } from '../../src/runtime/webgpu/open.ts'
import { runs } from '../support/cases.ts'
import { asHardware } from '../support/hardware.ts'
import { integers } from '../support/kernels.ts'
import { property } from '../support/property.ts'

const open: Device[] = []
afterAll(async () => {
  for (const d of open) await d.dispose()
})

/** A device, and how it is lost. */
async function losing(): Promise<{ readonly device: Device; lose(): Promise<void> }> {
  const found = await findAdapter({ adapter: 'swiftshader' })
  if ('reason' in found) throw new Error(found.reason)
  let raw: GPUDevice | undefined
  const adapter = new Proxy(found.adapter, {
    get(of, name) {
      const value: unknown = Reflect.get(of, name, of)
      if (name !== 'requestDevice') return typeof value === 'function' ? value.bind(of) : value
      return async (...args: Parameters<GPUAdapter['requestDevice']>) =>
        (raw = await of.requestDevice(...args))
    },
  })
  const device = await createWebGpuDevice(found.gpu, {}, adapter)
  return {
    device,
    async lose() {
      raw!.destroy()
      await raw!.lost
    },
  }
}
async function another(): Promise<Device> {
  const device = await devices.webgpu({ adapter: 'swiftshader' })
  open.push(device)
  return device
}

const product = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const matrix = (m: number, n: number, seed: number) => {
  const at = Array.from({ length: m * 2 }, (_, k) => k)
  const columns = [at.map((k) => k >> 1), at.map((k) => (((k >> 1) * 3 + seed) % (n - 1)) + (k & 1))]
  return coords([m, n], columns, integers(at.length, seed))
}
const valuesOf = async (p: Binding) => [...(await p.get('C')).values!]

const cases = fc.record({
  m: fc.integer({ min: 1, max: 20 }),
  seed: fc.nat(50),
  schedule: fc.constantFrom('gpu', 'hyb_combined', 'bsr', null),
  written: fc.boolean(),
})
property([cases], { numRuns: runs(4) })(
  'after a device loss, one call restores the kernel with its bound and written values',
  async ({ m, seed, schedule, written }) => {
    const { device, lose } = await losing()
    const kernel = schedule === null ? product : product.schedule(schedule)
    const tensors = { A: matrix(m, 9, seed), B: dense([9, 8], integers(72, seed)) }
    const prepared = await (await kernel.build(device)).bind(tensors)
    if (written) await prepared.set('B', integers(72, seed + 1))
    await prepared.run()
    const before = await valuesOf(prepared)
    await lose()
    await expect(prepared.run()).rejects.toMatchObject({
      diagnostics: [{ code: 'device/lost', hint: expect.stringContaining('binding.rebuild(device)') }],
    })
    const again = await prepared.rebuild(await another())
    prepared.free()
    await again.run()
    expect(await valuesOf(again)).toEqual(before)
    expect((await again.verify()).ok).toBe(true)
    expect(again.selection?.text).toBe(prepared.selection?.text)
    again.free()
  },
)

test('values that did not reach the lost device are bound on the new device', async () => {
  const { device, lose } = await losing()
  const tensors = { A: matrix(6, 9, 1), B: dense([9, 8], integers(72, 1)) }
  const prepared = await (await product.schedule('gpu').build(device)).bind(tensors)
  await lose()
  const B = integers(72, 2)
  await prepared.set('B', B).catch(() => {})
  const again = await prepared.rebuild(await another())
  await again.run()
  const cpu = await (await product.build(await devices.cpu()))({ ...tensors, B })
  expect(await valuesOf(again)).toEqual([...cpu.C!.values!])
})

test('run-time dispatch works on the new device, with written values', async () => {
  const program = await load(`import "sparsetile/kernels/dynamic-sparsity.spt"
import { panels } from "sparsetile/kernels/formats.spt"
schedule masked_matmul.mine choose {
  when (fill_ratio(A, panels(4, 2)) < 0.5) found
  otherwise whole
}
schedule masked_matmul.found { A as panels(4, 2) live in place }
schedule masked_matmul.whole { }`)
  const kernel = program.kernel('masked_matmul').schedule('mine')
  const A = dense(
    [8, 8],
    Float32Array.from({ length: 64 }, (_, k) => (k % 8 === 0 && k < 32 ? k : 0)),
  )
  const tensors = { A, B: dense([8, 4], integers(32, 1)) }
  const { device, lose } = await losing()
  const prepared = await (await kernel.build(asHardware(device))).bind(tensors)
  const full = integers(64, 3).map((x) => x + 50)
  await prepared.set('A', dense([8, 8], full))
  await prepared.run()
  await prepared.awaitMeasurements()
  await lose()
  const again = await prepared.rebuild(await another())
  for (let k = 0; k < 2; k++) {
    await again.run()
    await again.awaitMeasurements()
  }
  const cpu = await (await program.kernel('masked_matmul').build(await devices.cpu(), { auto: false }))({
    ...tensors,
    A: dense([8, 8], full),
  })
  expect(await valuesOf(again)).toEqual([...cpu.C!.values!])
  expect(again.selection?.schedule).toBe('whole')
})

test('data that only the lost device had are named, and another device kind is rejected', async () => {
  const cpu = await devices.cpu()
  const gpu = await another()
  const tensors = { A: matrix(6, 9, 1), B: dense([9, 8], integers(72, 1)) }
  const first = await (await product.schedule('gpu').build(gpu)).bind(tensors)
  await expect(first.rebuild(cpu)).rejects.toMatchObject({ diagnostics: [{ code: 'run/other-device' }] })
  const next = await (await product.schedule('gpu').build(gpu)).bind({
    A: matrix(9, 6, 2),
    B: first.output('C'),
  })
  await expect(next.rebuild(gpu)).rejects.toMatchObject({
    diagnostics: [{ code: 'run/resident', message: expect.stringContaining('B was resident') }],
  })
})

test('a rebuilt kernel does not depend on later writes to the first one', async () => {
  const [cpu, B] = [await devices.cpu(), integers(72, 1)]
  const tensors = { A: matrix(6, 9, 1), B: dense([9, 8], B) }
  const first = await (await product.schedule('cpu').build(cpu)).bind(tensors)
  await first.set('B', integers(72, 2))
  await first.run()
  const before = await valuesOf(first)
  const second = await first.rebuild(cpu)
  await first.set('B', integers(72, 3))
  first.free()
  const third = await second.rebuild(cpu)
  await third.run()
  expect(await valuesOf(third)).toEqual(before)
})
