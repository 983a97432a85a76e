/** The devices that conversions are tried on here. */

import { afterAll, beforeAll } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { releaseConversions } from '../../src/storage/engines/device/index.ts'
import { queueOf } from '../../src/storage/engines/device/resident-tensors.ts'
import type { Tuning } from '../../src/storage/engines/device/tuning.ts'

/** Blocks do what they do on a GPU, small ones, so that small tensors have several. */
const IN_BLOCKS: Tuning = {
  fused: 32,
  scan: { by: 'block', threads: 32, items: 1 },
  digit: 5,
  digitOfFew: 4,
  chunk: { by: 'block', threads: 32, items: 3 },
}

export const openInBlocks = (): Device => {
  const device = createCpuDevice()
  Object.assign(queueOf(device).tuning, IN_BLOCKS)
  return device
}

export const DEVICES: readonly {
  readonly kind: Device['kind']
  readonly name: string
  readonly open: () => Promise<Device>
}[] = [
  { kind: 'cpu', name: 'cpu', open: async () => createCpuDevice() },
  { kind: 'cpu', name: 'cpu in blocks', open: async () => openInBlocks() },
  { kind: 'webgpu', name: 'webgpu', open: () => createNodeWebGpu() },
]

/** The device of a group of tests: opened before them, and given back after with what conversions keep on it. */
export function opened(open: () => Device | Promise<Device>): { readonly device: Device } {
  let device: Device
  beforeAll(async () => {
    device = await open()
  })
  afterAll(async () => {
    await releaseConversions(device)
    await device.dispose()
  })
  return {
    get device() {
      return device
    },
  }
}
