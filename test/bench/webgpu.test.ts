/** The suite of WebGPU, with the CPU in both devices' place: who takes part, under which names. */
import { expect, test } from 'vitest'
import type { Case } from '../../bench/gpu/case.ts'
import { OurDevice, type OurRun } from '../../bench/gpu/ours.ts'
import type { Session } from '../../bench/gpu/session.ts'
import { webgpu } from '../../bench/gpu/suites/webgpu.ts'
import { devices } from '../../src/node.ts'

/** Checks, and takes no time for measuring. */
class Untimed extends OurDevice {
  override async prepare(...args: Parameters<OurDevice['prepare']>): Promise<OurRun> {
    const run = await super.prepare(...args)
    run.measure = async () => ({ event: 1, flushed: 1, backToBack: null, repeats: 1 })
    return run
  }
}

test('all three operations are compared with CUDA and naive kernels, vectors at one width', async () => {
  const [gpu, cuda] = [new Untimed(await devices.cpu()), new Untimed(await devices.cpu())]
  const done: Case[] = []
  const A = {
    name: 'small',
    rows: 3,
    columns: 2,
    indptr: Int32Array.of(0, 2, 2, 3),
    indices: Int32Array.of(0, 1, 1),
    values: Float32Array.of(1, 2, 3),
  }
  const asked = ['spmm', 'sddmm', 'spmv'].map((k) => `${k}.spt:${k}.auto`)
  const session = {
    webgpu: async () => gpu,
    cuda: async () => cuda,
    matrices: async function* () {
      yield A
    },
    options: { schedules: asked, widths: [4, 8] },
    ceilings: undefined,
    culprits: new Map(),
    late: () => false,
    has: () => false,
    say: () => {},
    done: async (c: Case) => void done.push(c),
  } as unknown as Session
  await webgpu(session)
  expect(done.map((c) => `${c.suite}, ${c.at}`)).toEqual([
    'webgpu-spmm, N = 4',
    'webgpu-spmm-naive, N = 4',
    'webgpu-spmm, N = 8',
    'webgpu-spmm-naive, N = 8',
    'webgpu-sddmm, K = 4',
    'webgpu-sddmm-naive, K = 4',
    'webgpu-sddmm, K = 8',
    'webgpu-sddmm-naive, K = 8',
    'webgpu-spmv, N = 1',
    'webgpu-spmv-naive, N = 1',
  ])
  expect(done.slice(-2).map((c) => c.entries.map((e) => [e.name, e.side, e.result]))).toEqual([
    [
      ['spmv.spt:spmv.auto', 'ours', 'ok'],
      ['CUDA spmv.spt:spmv.auto', 'peer', 'ok'],
    ],
    [
      ['spmv.spt:spmv.auto', 'ours', 'ok'],
      ['naive spmv.spt:spmv.gpu(64)', 'peer', 'ok'],
    ],
  ])
  await gpu.close()
  await cuda.close()
})
