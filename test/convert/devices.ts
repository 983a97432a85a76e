/** The devices that conversions are tried on here. */
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'

export const DEVICES: readonly { readonly kind: Device['kind']; readonly open: () => Promise<Device> }[] = [
  { kind: 'cpu', open: async () => createCpuDevice() },
  { kind: 'webgpu', open: () => createNodeWebGpu() },
]
