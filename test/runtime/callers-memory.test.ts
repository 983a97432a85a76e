/** Memory, devices, encoders and streams of the caller: our objects use them, and leave them intact. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { devices } from '../../src/node.ts'
import type { Command, CompiledModule, Device, DeviceBuffer, NativeMemory } from '../../src/runtime/device.ts'
import { USAGE } from '../../src/runtime/webgpu/callers-buffer.ts'
import { findAdapter } from '../../src/runtime/webgpu/node.ts'
import { codeOf, failure, iota } from '../support/device-suite.ts'
import { JS_TEXTS } from '../support/js-texts.ts'
import { WGSL_TEXTS } from '../support/wgsl-texts.ts'
import { fakeDevice } from './cuda-fake.ts'

const STORAGE = USAGE.storage | USAGE.copySrc | USAGE.copyDst

async function openGpu(descriptor: GPUDeviceDescriptor = {}): Promise<GPUDevice> {
  const found = await findAdapter()
  if ('reason' in found) throw new Error(found.reason)
  return found.adapter.requestDevice(descriptor)
}

/** `y = 2 x` over n elements. */
const doubling = (module: CompiledModule, x: DeviceBuffer, y: DeviceBuffer, n: number): Command => ({
  kind: 'launch',
  module,
  entry: 'scale',
  grid: WGSL_TEXTS.scale.grid(n),
  args: [x, 2, y, n],
})

describe('a GPUDevice of the caller', () => {
  let gpu: GPUDevice
  let device: Device
  let module: CompiledModule
  const errors: string[] = []

  beforeAll(async () => {
    gpu = await openGpu()
    gpu.addEventListener('uncapturederror', (e) => errors.push(e.error.message))
    device = await devices.webgpu({ device: gpu })
    module = await device.compile(WGSL_TEXTS.scale.module)
  })
  afterAll(async () => {
    await device.dispose()
    gpu.destroy()
  })

  const gpuBuffer = (size: number, usage = STORAGE): GPUBuffer => gpu.createBuffer({ size, usage })
  const wrap = (memory: NativeMemory, offset: number, bytes: number) =>
    device.wrap({ memory, offset, bytes }, 'X')
  const written = (b: GPUBuffer, offset: number, data: Float32Array<ArrayBuffer>) =>
    gpu.queue.writeBuffer(b, offset, data)

  test('its limits and features are those of the device, not of the adapter', () => {
    expect(device.limits.maxBuffersPerLaunch).toBe(gpu.limits.maxStorageBuffersPerShaderStage)
    expect(device.limits.maxBindingBytes).toBe(gpu.limits.maxStorageBufferBindingSize)
    for (const f of ['shader-f16', 'subgroups', 'timestamp-query'])
      expect(device.features.has(f)).toBe(gpu.features.has(f))
  })

  test('kernels read and write ranges of its buffers in place', async () => {
    const [from, to] = [gpuBuffer(1024), gpuBuffer(1024)]
    written(from, 256, iota(8) as Float32Array<ArrayBuffer>)
    written(to, 0, new Float32Array(256).fill(7))
    const [x, y] = [await wrap(from, 256, 32), await wrap(to, 512, 32)]
    await device.run([doubling(module, x, y, 8)])
    const all = new Float32Array(await device.download(await wrap(to, 0, 1024)))
    expect([...all].flatMap((v, k) => (v === 7 ? [] : [k]))).toEqual([...iota(8)].map((k) => 128 + k))
    expect([...all.slice(128, 136)]).toEqual([...iota(8)].map((v) => 2 * v))
    await device.run([{ kind: 'clear', buffer: y }])
    await device.run([{ kind: 'clear', buffer: y }, doubling(module, x, y, 4)])
    const cleared = new Float32Array(await device.download(y))
    expect([...cleared]).toEqual([0, 2, 4, 6, 0, 0, 0, 0])
    expect((await device.download(await wrap(to, 0, 1024))).byteLength).toBe(1024)
    expect(device.native(y)).toEqual({ memory: to, offset: 512, bytes: 32 })
    y.free()
    await device.upload(x, new Float32Array(8).fill(3))
    expect(await codeOf(() => device.download(y))).toBe('device/freed-buffer')
    expect(new Float32Array(await device.download(await wrap(to, 512, 32)))[1]).toBe(2)
    expect(errors).toEqual([])
  })

  test('work is recorded in the encoder of the caller and runs when the caller submits it', async () => {
    const [x, y] = [await wrap(gpuBuffer(32), 0, 32), await wrap(gpuBuffer(32), 0, 32)]
    await device.upload(x, iota(8))
    const encoder = gpu.createCommandEncoder()
    const commands = [doubling(module, x, y, 8)]
    device.record(commands, encoder)
    // Other scalars before the submission.
    await device.run([{ ...doubling(module, x, y, 8), args: [x, 5, y, 8] } as Command])
    expect(new Float32Array(await device.download(y))[1]).toBe(5)
    gpu.queue.submit([encoder.finish()])
    expect([...new Float32Array(await device.download(y))]).toEqual([...iota(8)].map((v) => 2 * v))
    const again = gpu.createCommandEncoder()
    device.record(commands, again)
    await device.upload(x, new Float32Array(8).fill(1))
    gpu.queue.submit([again.finish()])
    expect(new Float32Array(await device.download(y))[7]).toBe(2)
    expect(await codeOf(() => device.record(commands, {} as GPUCommandEncoder))).toBe('api/argument')
    device.record(commands, again)
    expect(await codeOf(() => device.finish())).toBe('device/validation')
    expect(errors).toEqual([])
  })

  test('unusable buffers are rejected by reason', async () => {
    const code = (memory: unknown, offset = 0, bytes = 32) =>
      codeOf(() => wrap(memory as NativeMemory, offset, bytes))
    expect(await code(3n)).toBe('api/argument')
    expect(await code(new ArrayBuffer(32))).toBe('api/argument')
    expect(await code(gpuBuffer(64, USAGE.copySrc))).toBe('device/usage')
    expect(await code(gpuBuffer(64), 4)).toBe('device/range')
    expect(await code(gpuBuffer(64), -256)).toBe('device/range')
    expect(await code(gpuBuffer(64), 0, 65)).toBe('device/range')
    expect(await code(gpuBuffer(36), 0, 36)).toBe('device/range')
    expect((await wrap(gpuBuffer(48), 0, 36)).bytes).toBe(36)
    const other = await openGpu()
    expect(await code(other.createBuffer({ size: 64, usage: STORAGE }))).toBe('device/foreign-buffer')
    const gone = gpuBuffer(64)
    gone.destroy()
    expect(await code(gone)).toBe('device/freed-buffer')
    const mapped = gpu.createBuffer({ size: 64, usage: STORAGE, mappedAtCreation: true })
    expect(await code(mapped)).toBe('device/usage')
    const noRead = await wrap(gpuBuffer(64, USAGE.storage), 0, 64)
    expect(await codeOf(() => device.download(noRead))).toBe('device/usage')
    expect(await codeOf(() => device.upload(noRead, iota(4)))).toBe('device/usage')
    other.destroy()
    expect(errors).toEqual([])
  })

  test('a buffer that is destroyed later is named by the run', async () => {
    const [from, to] = [gpuBuffer(32), gpuBuffer(32)]
    const [x, y] = [await wrap(from, 0, 32), await wrap(to, 0, 32)]
    await device.run([doubling(module, x, y, 8)])
    from.destroy()
    const [first] = await failure(() => device.run([doubling(module, x, y, 8)]))
    expect(first!.code).toBe('device/freed-buffer')
    expect(await codeOf(() => device.download(x))).toBe('device/freed-buffer')
  })

  test('two ranges of a GPUBuffer cannot be read and written by one launch', async () => {
    const both = gpuBuffer(1024)
    const [x, y] = [await wrap(both, 0, 32), await wrap(both, 512, 32)]
    expect(await codeOf(() => device.run([doubling(module, x, y, 8)]))).toBe('device/aliased-arguments')
  })

  test('dispose frees our buffers only, and the device of the caller goes on', async () => {
    const second = await devices.webgpu({ device: gpu })
    const own = second.alloc(64, 'own')
    const kept = gpuBuffer(64)
    const wrapped = await second.wrap({ memory: kept, offset: 0, bytes: 64 }, 'kept')
    const { memory } = second.native(own)
    const waiting = second.download(wrapped)
    await second.dispose()
    expect(await codeOf(() => waiting)).toBe('device/disposed')
    expect(await codeOf(() => second.download(wrapped))).toBe('device/disposed')
    expect(await codeOf(() => wrap(memory, 0, 64))).toBe('device/freed-buffer')
    const still = await wrap(kept, 0, 64)
    expect((await device.download(still)).byteLength).toBe(64)
    expect(errors).toEqual([])
  })

  test('the loss of the device says how to go on, and a lost device is not shared', async () => {
    const doomed = await openGpu()
    const on = await devices.webgpu({ device: doomed })
    doomed.destroy()
    await doomed.lost
    const [first] = await failure(() => on.finish())
    expect(first!.code).toBe('device/lost')
    expect(first!.hint).toContain('devices.webgpu({ device: yourNewGPUDevice })')
    expect(await codeOf(() => devices.webgpu({ device: doomed }))).toBe('device/lost')
    expect(await codeOf(() => devices.webgpu({ device: {} as GPUDevice }))).toBe('api/argument')
    expect(await codeOf(() => devices.webgpu({ device: undefined as unknown as GPUDevice }))).toBe(
      'api/argument',
    )
  })
})

test('a submission with more scalars than the arena holds is right, and keeps no bind groups', async () => {
  const device = await devices.webgpu()
  const module = await device.compile(WGSL_TEXTS.scale.module)
  const [x, y] = [device.alloc(32, 'x'), device.alloc(32, 'y')]
  await device.upload(x, iota(8))
  const many = Array.from({ length: 1000 }, (_, k) => ({
    ...doubling(module, x, y, 8),
    args: [x, k, y, 8],
  })) as Command[]
  await device.run(many)
  await device.run(many)
  expect(new Float32Array(await device.download(y))[1]).toBe(999)
  await device.run(many.slice(0, 3))
  expect(new Float32Array(await device.download(y))[1]).toBe(2)
  const { entries } = module as unknown as { entries: Map<string, { bindGroups: Map<string, unknown> }> }
  expect(entries.get('scale')!.bindGroups.size).toBe(1)
  await device.dispose()
})

test('the cpu device works in an ArrayBuffer of the caller', async () => {
  const device = await devices.cpu()
  const module = await device.compile(JS_TEXTS.scale.module)
  const memory = new ArrayBuffer(128)
  new Float32Array(memory, 64, 8).set(iota(8))
  const x = await device.wrap({ memory, offset: 64, bytes: 32 }, 'x')
  const y = await device.wrap({ memory, offset: 0, bytes: 32 }, 'y')
  const stream = device.stream('s')
  device.record([{ ...doubling(module, x, y, 8), grid: [1, 1, 1] } as Command], stream)
  expect([...new Float32Array(memory, 0, 8)]).toEqual([...iota(8)].map((v) => 2 * v))
  expect(device.native(x)).toEqual({ memory, offset: 64, bytes: 32 })
  const code = (m: unknown, offset = 0, bytes = 8) =>
    codeOf(() => device.wrap({ memory: m as ArrayBuffer, offset, bytes }, 'x'))
  expect(await code(new Uint8Array(8))).toBe('api/argument')
  expect(await code(memory, 4)).toBe('device/range')
  expect(await code(memory, 128, 8)).toBe('device/range')
  expect(await codeOf(() => device.stream('s', 3n))).toBe('api/argument')
  structuredClone(memory, { transfer: [memory] })
  expect(await codeOf(() => device.download(x))).toBe('device/freed-buffer')
})

describe('CUDA memory and streams of the caller (a fake driver)', () => {
  test('wrapped memory is used in place and not freed', async () => {
    const { device, driver } = fakeDevice()
    const own = device.alloc(1024, 'own')
    const { memory } = device.native(own)
    const at = await device.wrap({ memory, offset: 64, bytes: 32 }, 'x')
    await device.upload(at, iota(8))
    expect(device.native(at)).toEqual({ memory: (memory as bigint) + 64n, offset: 0, bytes: 32 })
    const bytes = driver.memory.get(memory as bigint)!
    expect(new Float32Array(bytes.slice(64, 96).buffer)[5]).toBe(5)
    at.free()
    expect(driver.memory.has(memory as bigint)).toBe(true)
    expect(await codeOf(() => device.download(at))).toBe('device/freed-buffer')
    const code = (m: unknown, offset: number, n: number) =>
      codeOf(() => device.wrap({ memory: m as bigint, offset, bytes: n }, 'x'))
    expect(await code(new ArrayBuffer(8), 0, 8)).toBe('api/argument')
    expect(await code(12n, 0, 8)).toBe('device/foreign-buffer')
    expect(await code(memory, 4, 8)).toBe('device/range')
    expect(await code(memory, 1008, 32)).toBe('device/range')
    await device.dispose()
  })

  test('work is recorded on a stream of the caller, which is not destroyed', async () => {
    const { device, driver } = fakeDevice()
    driver.streams.lazy = true
    const handle = driver.streams.make('stream')
    const stream = device.stream('theirs', handle)
    const y = device.alloc(32, 'y')
    await device.upload(y, new Float32Array(8).fill(3))
    device.record([{ kind: 'clear', buffer: y }], stream)
    const before = new Float32Array(driver.memory.get(device.native(y).memory as bigint)!.slice().buffer)
    expect(before[0]).toBe(3)
    expect(new Float32Array(await device.download(y))[0]).toBe(0)
    expect(await codeOf(() => device.record([], {} as never))).toBe('device/foreign')
    stream.free()
    await device.dispose()
    expect(driver.streams.live.stream.has(handle)).toBe(true)
  })
})
