/** What kernels compute, exactly. */
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type CudaDevice, createCudaDevice } from '../../src/runtime/cuda/index.ts'
import type { DeviceBuffer } from '../../src/runtime/device.ts'
import { check, equal, expect, F32, I32, iota, launcher, put, refused } from './harness.ts'
import { KERNELS, SCALARS, TYPES } from './kernels.ts'

export async function results(device: CudaDevice): Promise<void> {
  await check('scale 1,000,003 floats', async () => {
    const x = iota(1_000_003)
    const [dx, dy] = [await put(device, x, 'x'), device.alloc(x.byteLength, 'y')]
    const scale = await launcher(device, KERNELS.scale)
    await device.run([scale([Math.ceil(x.length / 256), 1, 1], dx, dy, x.length, 3)])
    equal(
      await F32(device, dy),
      x.map((v) => 3 * v),
    )
    dx.free()
    dy.free()
    return undefined
  })
  await check('shared-memory sum with clear', async () => {
    const x = Float32Array.from({ length: 100_001 }, (_, i) => i % 8)
    const [dx, dy] = [await put(device, x, 'x'), await put(device, Float32Array.of(NaN), 'y')]
    const sum = await launcher(device, KERNELS.sum)
    await device.run([{ kind: 'clear', buffer: dy }, sum([391, 1, 1], dx, dy, x.length)])
    return equal(await F32(device, dy), [x.reduce((a, b) => a + b)])
  })
  await check('scalars of all types', async () => {
    const dy = device.alloc(8 * SCALARS.length, 'y')
    const scalars = await launcher(device, KERNELS.scalars)
    await device.run([scalars([1, 1, 1], dy, ...SCALARS.map(([, , v]) => v))])
    return equal(
      new Float64Array(await device.download(dy)),
      SCALARS.map(([, , v]) => v),
    )
  })
  await check('elements of all types, stored as they are', async () => {
    const pairs: DeviceBuffer[] = []
    for (const [d, , data] of TYPES) {
      pairs.push(await put(device, data, d), device.alloc(data.byteLength, `${d} copy`))
    }
    await device.run([(await launcher(device, KERNELS.types))([1, 1, 1], ...pairs)])
    for (const [k, [, , data]] of TYPES.entries()) {
      const back = await device.download(pairs[2 * k + 1]!)
      equal(new Uint8Array(back), new Uint8Array(data.buffer))
    }
    return undefined
  })
  await check('160 KiB of dynamic shared memory', async () => {
    const x = iota(40 * 1024)
    const [dx, dy] = [await put(device, x, 'x'), device.alloc(x.byteLength, 'y')]
    await device.run([(await launcher(device, KERNELS.reverse))([1, 1, 1], dx, dy, x.length)])
    return equal(await F32(device, dy), x.slice().reverse())
  })
  await check('96 KiB of static shared memory: right, or refused', async () => {
    const n = 24 * 1024
    const dy = device.alloc(4 * n, 'y')
    try {
      await device.run([(await launcher(device, KERNELS.wide))([1, 1, 1], dy)])
    } catch (error) {
      if (error instanceof SptError) return `refused: ${error.message}`
      throw error
    }
    equal(
      await F32(device, dy),
      Float32Array.from({ length: n }, (_, i) => n - 1 - i),
    )
    return 'right'
  })
  await check('20,000 launches in order', async () => {
    const dy = await put(device, Int32Array.of(0), 'y')
    const step = await launcher(device, KERNELS.step)
    await device.run(Array.from({ length: 20_000 }, (_, k) => step([1, 1, 1], dy, k)))
    return equal(await I32(device, dy), [20_000])
  })
  await check('three-dimensional grids and blocks', async () => {
    const n = 5 * 7 * 3 * 24
    const dy = device.alloc(4 * n, 'y')
    await device.run([(await launcher(device, KERNELS.grid))([5, 7, 3], dy)])
    return equal(
      await I32(device, dy),
      Int32Array.from({ length: n }, (_, i) => i),
    )
  })
  await check('parts: upload at an offset, download a prefix, empty buffers', async () => {
    const b = await put(device, Float32Array.of(1, 2, 3, 4), 'b')
    await device.upload(b, Float32Array.of(9, 8).subarray(1), 8)
    equal(await F32(device, b, 3), [1, 2, 8])
    const none = device.alloc(0, 'empty')
    await device.upload(none, new Float32Array(0))
    await device.run([{ kind: 'clear', buffer: none }])
    equal(await F32(device, none), [])
    const scale = await launcher(device, KERNELS.scale)
    await device.run([scale([1, 1, 1], none, none, 0, 1)])
    none.free()
    none.free()
    return undefined
  })
  await check('instructions of the chip alone (sm_90a)', async () => {
    const dy = device.alloc(4, 'y')
    await device.run([(await launcher(device, KERNELS.fence))([1, 1, 1], dy)])
    return equal(await I32(device, dy), [7])
  })
  await check('JavaScript runs on while a kernel does', async () => {
    const dy = device.alloc(4, 'y')
    const spin = await launcher(device, KERNELS.spin)
    let ticks = 0
    const timer = setInterval(() => ticks++, 10)
    const start = performance.now()
    await device.run([spin([1, 1, 1], dy, 300)])
    clearInterval(timer)
    const [event] = await device.time([spin([1, 1, 1], dy, 50)], 1)
    expect(performance.now() - start >= 350, 'run resolved before its kernel ended')
    expect(ticks >= 10, `only ${ticks} ticks`)
    expect(event! >= 50 && event! < 60, `an event time of ${event} ms for 50 ms`)
    return `${ticks} ticks`
  })
  await check('two devices in one process, and disposal', async () => {
    const other = await createCudaDevice()
    const b = await put(other, Float32Array.of(5), 'theirs')
    await refused('device/foreign-buffer', () => device.download(b))
    equal(await F32(other, b), [5])
    await other.dispose()
    await other.dispose()
    await refused('device/disposed', () => other.alloc(4, 'late'))
    b.free()
    const mine = await put(device, Float32Array.of(6), 'mine')
    return equal(await F32(device, mine), [6])
  })
}
