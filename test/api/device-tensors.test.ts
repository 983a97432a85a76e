/** Tensors in memory of the caller as inputs, outputs and updated tensors of kernels; runs in the caller's encoder. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deviceTensor } from '../../src/device.ts'
import { coords, dense, devices, load } from '../../src/node.ts'
import { type Callers, onCpu, onWebGpu } from '../support/callers-memory.ts'
import { codeOf } from '../support/device-suite.ts'

const TEXT = `
kernel spmm(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
kernel grow(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] inout
  iterate s [i] as S { X[i] = X[i] + 1 }
}`

const A = coords(
  [2, 3],
  [
    [0, 0, 1],
    [0, 2, 1],
  ],
  new Float32Array([1, 2, 3]),
)

for (const [name, open] of [
  ['cpu', onCpu],
  ['webgpu', onWebGpu],
] as const)
  describe(`memory of the caller on ${name}`, () => {
    let on: Callers
    beforeAll(async () => {
      on = await open()
    })
    afterAll(() => on.close())

    const spmm = async () => (await load(TEXT)).kernel('spmm').build(on.device)

    test('inputs and outputs are read and written in place, and verified with their current values', async () => {
      const { device } = on
      const [from, to] = [on.make(1024), on.make(1024)]
      on.write(from, 256, new Float32Array([1, 2, 3, 4, 5, 6]))
      on.write(to, 0, new Float32Array(256).fill(7))
      const B = await deviceTensor(device, from, { shape: [3, 2], offset: 256, label: 'B of mine' })
      const C = await deviceTensor(device, to, { shape: [2, 2], offset: 512 })
      const binding = await (await spmm()).bind({ A, B, C })
      await binding.run()
      const all = await on.read(to)
      expect([...all.slice(128, 132)]).toEqual([11, 14, 9, 12])
      expect([...all].every((v, k) => v === 7 || (k >= 128 && k < 132))).toBe(true)
      expect((await binding.get('C')).values).toEqual(new Float32Array([11, 14, 9, 12]))
      on.write(from, 256, new Float32Array([1, 1, 1, 1, 1, 1]))
      const result = await binding.verify()
      expect([result.problems, result.compared]).toEqual([[], 4])
      expect([...(await on.read(to)).slice(128, 132)]).toEqual([3, 3, 3, 3])
      expect(binding.output('C')).toBe(C)
      expect(C.native).toEqual({ memory: to, offset: 512, bytes: 16 })
      expect(await codeOf(() => binding.set('B', new Float32Array(6)))).toBe('run/resident')
      binding.free()
      for (const t of [B, C]) t.free()
      expect(await codeOf(() => C.download())).toBe('device/freed-buffer')
      expect((await on.read(to))[0]).toBe(7)
    })

    test('the memory of an output is that of another library', async () => {
      const binding = await (await spmm()).bind({ A, B: dense([3, 2], new Float32Array(6).fill(2)) })
      await binding.run()
      const { memory, bytes } = binding.output('C').native
      expect([...(await on.read(memory)).slice(0, bytes / 4)]).toEqual([6, 6, 6, 6])
      binding.free()
    })

    test('an updated tensor lives in memory of the caller, also for several kernels', async () => {
      const memory = on.make(16)
      on.write(memory, 0, new Float32Array([1, 2, 3]))
      const X = await deviceTensor(on.device, memory, { shape: [3] })
      const grow = await (await load(TEXT)).kernel('grow').build(on.device)
      const [one, other] = [await grow.bind({ X }), await grow.bind({ X })]
      await Promise.all([one.run(), other.run(), one.run()])
      expect([...(await on.read(memory)).slice(0, 3)]).toEqual([4, 5, 6])
      expect((await one.verify()).problems).toEqual([])
      expect([...(await on.read(memory)).slice(0, 3)]).toEqual([4, 5, 6])
      one.free()
      other.free()
    })

    test('wrong shapes, types, structure and devices are rejected', async () => {
      const memory = on.make(1024)
      const t = (shape: number[], dtype?: 'f32' | 'i32') =>
        deviceTensor(on.device, memory, { shape, ...(dtype && { dtype }) })
      const compiled = await spmm()
      const B = dense([3, 2], new Float32Array(6))
      const code = async (tensors: object) => codeOf(() => compiled.bind({ A, B, ...tensors }))
      expect(await code({ C: await t([3, 2]) })).toBe('bind/size-mismatch')
      expect(await code({ C: await t([4]) })).toBe('bind/rank')
      expect(await code({ C: await t([2, 2], 'i32') })).toBe('convert/dtype')
      expect(await code({ A: await t([2, 3]) })).toBe('run/resident')
      expect(await code({ C: dense([2, 2], new Float32Array(4)) })).toBe('bind/not-input')
      const elsewhere = await devices.cpu()
      const other = await deviceTensor(elsewhere, new ArrayBuffer(64), { shape: [2, 2] })
      expect(await code({ C: other })).toBe('run/other-device')
      expect(await codeOf(() => deviceTensor(on.device, memory, { shape: [-1] }))).toBe('tensor/shape')
      expect(await codeOf(() => deviceTensor(on.device, memory, { shape: [300] }))).toBe('device/range')
    })

    test('set copies the values at once', async () => {
      const compiled = await spmm()
      const length = 6
      const values = fc.array(fc.integer({ min: -8, max: 8 }), { minLength: length, maxLength: length })
      const asTensor = fc.boolean()
      const binding = await compiled.bind({ A, B: dense([3, 2], new Float32Array(length)) })
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(values, asTensor), { minLength: 1, maxLength: 3 }),
          async (sets) => {
            const array = new Float32Array(length)
            const results: Promise<ArrayLike<number>>[] = []
            for (const [list, isTensor] of sets) {
              array.set(list)
              void binding.set('B', isTensor ? dense([3, 2], array) : array)
              array.fill(99)
              void binding.run()
              results.push(binding.get('C').then((c) => c.values as Float32Array))
            }
            const got = (await Promise.all(results)).map((r) => [...(r as Float32Array)])
            expect(got).toEqual(
              sets.map(([b]) => [b[0]! + 2 * b[4]!, b[1]! + 2 * b[5]!, 3 * b[2]!, 3 * b[3]!]),
            )
          },
        ),
        { numRuns: 10 },
      )
      binding.free()
    })
  })

test('a run is recorded in the encoder of the caller, between its own work', async () => {
  const on = await onWebGpu()
  const [from, to] = [on.make(32), on.make(32)]
  const values = on.make(32)
  on.write(values, 0, new Float32Array([1, 2, 3, 4, 5, 6]))
  const B = await deviceTensor(on.device, from, { shape: [3, 2] })
  const C = await deviceTensor(on.device, to, { shape: [2, 2] })
  const compiled = await (await load(TEXT)).kernel('spmm').build(on.device)
  const binding = await compiled.bind({ A, B, C })
  expect(await codeOf(() => binding.record({} as never))).toBe('api/argument')
  const encoder = on.gpu.createCommandEncoder()
  encoder.copyBufferToBuffer(values as unknown as GPUBuffer, 0, from as unknown as GPUBuffer, 0, 32)
  binding.record(encoder)
  expect((await on.read(to))[0]).toBe(0)
  on.gpu.queue.submit([encoder.finish()])
  expect([...(await on.read(to)).slice(0, 4)]).toEqual([11, 14, 9, 12])
  on.write(from, 0, new Float32Array(6).fill(1))
  binding.record(on.device.stream('s'))
  expect([...((await binding.get('C')).values as Float32Array)]).toEqual([3, 3, 3, 3])
  await on.close()
})

test('objects are disposed of at the end of their block', async () => {
  const device = await devices.webgpu()
  const compiled = await (await load(TEXT)).kernel('grow').build(device)
  const binding = await compiled.bind({ X: new Float32Array(4) })
  const [graph, stream, event] = [await binding.graph(), device.stream('s'), device.event()]
  for (const x of [event, stream, graph, binding, compiled]) x[Symbol.dispose]()
  expect(await codeOf(() => graph.launch())).toBe('device/freed')
  expect(await codeOf(() => stream.finish())).toBe('device/freed')
  expect(await codeOf(() => binding.run())).toBe('device/freed-buffer')
  expect(await codeOf(() => compiled.bind({ X: new Float32Array(4) }))).toBe('device/released-module')
  await device[Symbol.asyncDispose]()
  expect(await codeOf(() => device.finish())).toBe('device/disposed')
})
