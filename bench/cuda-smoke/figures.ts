/** The figures that plans are made with. */
import type { CudaDevice } from '../../src/runtime/cuda/index.ts'
import { check, expect, launcher, median, put } from './harness.ts'
import { KERNELS } from './kernels.ts'

export async function figures(device: CudaDevice): Promise<void> {
  await check('figures: 1 GiB up and down', async () => {
    const bytes = 2 ** 30
    const host = new Uint32Array(bytes / 4)
    for (let i = 0; i < host.length; i++) host[i] = i
    const b = device.alloc(bytes, 'big')
    const rates: string[] = []
    for (const round of ['first', 'second']) {
      let start = performance.now()
      await device.upload(b, host)
      const up = bytes / (performance.now() - start) / 1e6
      start = performance.now()
      const back = await device.download(b)
      const down = bytes / (performance.now() - start) / 1e6
      rates.push(`${round} ${up.toFixed(2)} GB/s up, ${down.toFixed(2)} down`)
      expect(Buffer.compare(Buffer.from(back), Buffer.from(host.buffer)) === 0, 'what came back differs')
    }
    b.free()
    return rates.join('; ')
  })
  await check('figures: device copy', async () => {
    const bytes = 2 ** 31
    const [x, y] = [device.alloc(bytes, 'x'), device.alloc(bytes, 'y')]
    const copy = await launcher(device, KERNELS.copy)
    const commands = [copy([device.chip.multiprocessors * 16, 1, 1], x, y, bytes / 16)]
    await device.run([{ kind: 'clear', buffer: x }, ...commands])
    const ms = median(await device.time(commands, 30))
    x.free()
    y.free()
    return `${((2 * bytes) / ms / 1e6).toFixed(0)} GB/s read and written (zeros), ${ms.toFixed(3)} ms`
  })
  await check('figures: launches', async () => {
    const dy = await put(device, Int32Array.of(0), 'y')
    const step = await launcher(device, KERNELS.step)
    const many = Array.from({ length: 10_000 }, () => step([1, 1, 1], dy, -1))
    await device.run(many)
    let start = performance.now()
    await device.run(many)
    const each = ((performance.now() - start) / many.length) * 1000
    start = performance.now()
    for (let i = 0; i < 1000; i++) await device.run([many[0]!])
    const alone = performance.now() - start
    const gpu = median(await device.time(many.slice(0, 100), 20)) * 10
    const single = median(await device.time(many.slice(0, 1), 300)) * 1000
    return (
      `${each.toFixed(2)} µs a launch in a list, ${alone.toFixed(2)} µs run and wait; ` +
      `by events ${gpu.toFixed(2)} µs in a list, ${single.toFixed(2)} µs alone`
    )
  })
}
