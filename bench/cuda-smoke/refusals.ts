/** What must be refused, with its code. */
import type { CudaDevice } from '../../src/runtime/cuda/index.ts'
import type { DeviceBuffer, Entry, ModuleText } from '../../src/runtime/device.ts'
import { check, expect, launcher, refused } from './harness.ts'
import { KERNELS } from './kernels.ts'

export async function refusals(device: CudaDevice): Promise<void> {
  await check('compile error with its line', async () => {
    const text = KERNELS.scale.text.replace('a * x[i]', 'a * z[i]')
    const message = await refused('device/compile', () => device.compile({ ...KERNELS.scale, text }))
    expect(message.includes('line 3') && message.includes('"z"'), message)
    return message
  })
  await check('missing header, missing entry, too many threads, too much shared memory', async () => {
    const withText = (text: string): ModuleText => ({ ...KERNELS.scale, text })
    const withEntry = (change: Partial<Entry>): ModuleText => ({
      ...KERNELS.scale,
      entries: [{ ...KERNELS.scale.entries[0]!, ...change }],
    })
    await refused('device/header-missing', () =>
      device.compile(withText(`#include <no_such_header.h>\n${KERNELS.scale.text}`)),
    )
    await refused('device/no-entry', () => device.compile(withEntry({ name: 'scales' })))
    await refused('device/over-limit', () => device.compile(withEntry({ block: [1024, 2, 1] })))
    await refused('device/over-limit', () => device.compile(withEntry({ block: [1, 1, 128] })))
    return refused('device/over-limit', () => device.compile(withEntry({ sharedBytes: 2 ** 20 })))
  })
  await check('bad launches', async () => {
    const b = device.alloc(16, 'b')
    const gone = device.alloc(16, 'gone')
    gone.free()
    const scale = await launcher(device, KERNELS.scale)
    const one = [1, 1, 1] as const
    await refused('device/grid', () => device.run([scale([0, 1, 1], b, b, 4, 1)]))
    await refused('device/grid', () => device.run([scale([1, 65536, 1], b, b, 4, 1)]))
    await refused('device/arguments', () => device.run([scale(one, b, b, 4)]))
    await refused('device/arguments', () => device.run([scale(one, b, b, 0.5, 1)]))
    await refused('device/arguments', () => device.run([scale(one, 3, b, 4, 1)]))
    await refused('device/freed-buffer', () => device.run([scale(one, gone, b, 4, 1)]))
    await refused('device/range', () => device.upload(b, new Float32Array(5)))
    await refused('device/range', () => device.download(b, 17))
    const module = await device.compile(KERNELS.step)
    module.release()
    return refused('device/released-module', () =>
      device.run([{ kind: 'launch', module, entry: 'step', grid: one, args: [b, 0] }]),
    )
  })
  await check('out of memory, and on', async () => {
    await refused('device/buffer-too-large', () => device.alloc(device.limits.maxBufferBytes + 1, 'huge'))
    const held: DeviceBuffer[] = []
    const part = Math.floor(device.limits.maxBufferBytes * 0.45)
    const message = await refused('device/out-of-memory', () => {
      for (let i = 0; i < 4; i++) held.push(device.alloc(part, `part ${i}`))
    })
    for (const b of held) b.free()
    device.alloc(part, 'again').free()
    return message
  })
  await check('3,000 rounds of allocating leave nothing', async () => {
    for (let i = 0; i < 3000; i++) device.alloc(2 ** 24, 'round').free()
    device.alloc(Math.floor(device.limits.maxBufferBytes * 0.9), 'nearly all').free()
    return undefined
  })
}
