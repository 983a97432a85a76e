/** Descriptions of devices, for plans that are written without a device. */
import type { DeviceKind } from '../../backends/target.ts'
import type { Device, DeviceLimits } from '../../runtime/device.ts'

/** The properties of a device that plans depend on. */
export type DeviceProperties = Pick<Device, 'kind' | 'name' | 'limits' | 'features' | 'storage'>

const UNLIMITED: DeviceLimits = {
  maxBufferBytes: Infinity,
  maxBindingBytes: Infinity,
  maxBuffersPerLaunch: Infinity,
  maxThreadsPerBlock: Infinity,
  maxBlockDim: [Infinity, Infinity, Infinity],
  maxGridDim: [Infinity, Infinity, Infinity],
  maxSharedBytes: Infinity,
}

/** Limits that every WebGPU device has (W3C, WebGPU, section 3.6.2). */
const WEBGPU: DeviceLimits = {
  maxBufferBytes: 2 ** 28,
  maxBindingBytes: 2 ** 27,
  maxBuffersPerLaunch: 8,
  maxThreadsPerBlock: 256,
  maxBlockDim: [256, 256, 64],
  maxGridDim: [65_535, 65_535, 65_535],
  maxSharedBytes: 16_384,
}

/**
 * Returns the description of a device with the least limits of a kind and the given features. `cuda`: instructions of every compute
 * capability are accepted, because loading checks the needs of a plan.
 */
export const describedDevice = (kind: DeviceKind, features: ReadonlySet<string>): DeviceProperties => ({
  kind,
  name: `any ${kind} device`,
  limits: kind === 'webgpu' ? WEBGPU : UNLIMITED,
  features: kind === 'cuda' ? anything : features,
  storage: kind === 'webgpu' ? 'words' : 'native',
})

const anything: ReadonlySet<string> = Object.assign(new Set<string>(), { has: () => true })
