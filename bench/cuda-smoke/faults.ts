/** Faulting kernels, each in a process of its own. */
import { spawnSync } from 'node:child_process'
import { createCudaDevice } from '../../src/runtime/cuda/index.ts'
import { check, expect, launcher, refused } from './harness.ts'
import { KERNELS } from './kernels.ts'

/** Runs in a process of its own, since CUDA refuses all work after a fault. */
export async function fault(kind: string): Promise<void> {
  const device = await createCudaDevice({ syncEachLaunch: kind.endsWith('-sync') })
  const b = device.alloc(16, 'b')
  const step = await launcher(device, KERNELS.step)
  const bad = await launcher(device, kind.startsWith('wild') ? KERNELS.wild : KERNELS.crooked)
  const message = await refused('device/fault', () =>
    device.run([step([1, 1, 1], b, 0), bad([1, 1, 1], b), step([1, 1, 1], b, 1)]),
  )
  console.log(message)
  await refused('device/lost', () => device.alloc(4, 'after'))
  await refused('device/lost', () => device.run([]))
  b.free()
  await device.dispose()
  console.log('child done')
}

export async function faults(self: string): Promise<void> {
  const cases = [
    ['wild', ['CUDA_ERROR_ILLEGAL_ADDRESS', "'step', 'wild'"]],
    ['wild-sync', ['CUDA_ERROR_ILLEGAL_ADDRESS', "kernel 'wild'"]],
    ['crooked', ['CUDA_ERROR_MISALIGNED_ADDRESS', "'step', 'crooked'"]],
    ['crooked-sync', ['CUDA_ERROR_MISALIGNED_ADDRESS', "kernel 'crooked'"]],
  ] as const
  for (const [kind, words] of cases) {
    await check(`fault in a process of its own: ${kind}`, async () => {
      const child = spawnSync(process.execPath, [self, '--fault', kind], { encoding: 'utf8' })
      const said = child.stdout + child.stderr
      expect(child.status === 0 && said.includes('child done'), `exit ${child.status}: ${said}`)
      for (const word of words) expect(said.includes(word), `no "${word}" in: ${said}`)
      return said.split('\n')[0]
    })
  }
}
