/** Faulting kernels, each in a process of its own. */
import { spawnSync } from 'node:child_process'
import { createCudaDevice } from '../../src/runtime/cuda/index.ts'
import type { ModuleText } from '../../src/runtime/device.ts'
import { check, expect, launcher, refused } from './harness.ts'
import { KERNELS } from './kernels.ts'

/** As a compiled kernel has it: with where its user wrote it. */
const placed = (text: ModuleText): ModuleText => ({
  ...text,
  entries: text.entries.map((e) => ({ ...e, place: `kernels/${e.name}.spt:6` })),
})

/** Runs in a process of its own, since CUDA refuses all work after a fault. */
export async function fault(kind: string): Promise<void> {
  const device = await createCudaDevice({ syncEachLaunch: kind.endsWith('-sync') })
  const b = device.alloc(16, 'b')
  const step = await launcher(device, KERNELS.step)
  const bad = await launcher(device, placed(kind.startsWith('wild') ? KERNELS.wild : KERNELS.crooked))
  const commands = [step([1, 1, 1], b, 0), bad([1, 1, 1], b), step([1, 1, 1], b, 1)]
  const message = await refused('device/fault', async () => {
    if (!kind.includes('graph')) return device.run(commands)
    const graph = await device.graph(commands)
    graph.launch()
    graph.launch(device.stream('beside'))
    return device.finish()
  })
  console.log(message)
  await refused('device/lost', () => device.alloc(4, 'after'))
  await refused('device/lost', () => device.run([]))
  b.free()
  await device.dispose()
  console.log('child done')
}

export async function faults(self: string): Promise<void> {
  const cases = [
    ['wild', ['CUDA_ERROR_ILLEGAL_ADDRESS', "'step', 'wild' in kernels/wild.spt:6"]],
    ['wild-sync', ['CUDA_ERROR_ILLEGAL_ADDRESS', "kernel 'wild' in kernels/wild.spt:6"]],
    ['wild-graph', ['CUDA_ERROR_ILLEGAL_ADDRESS', "'step', 'wild' in kernels/wild.spt:6"]],
    ['wild-graph-sync', ['CUDA_ERROR_ILLEGAL_ADDRESS', "kernel 'wild' in kernels/wild.spt:6"]],
    ['crooked', ['CUDA_ERROR_MISALIGNED_ADDRESS', "'step', 'crooked' in kernels/crooked.spt:6"]],
    ['crooked-sync', ['CUDA_ERROR_MISALIGNED_ADDRESS', "kernel 'crooked' in kernels/crooked.spt:6"]],
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
