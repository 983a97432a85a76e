/** Properties of a device for lowering. */
import { TARGETS, targetOf } from '../../backends/targets/index.ts'
import type { LowerOptions } from '../../lower/passes.ts'
import type { DeviceProperties } from './device-limits.ts'

export function lanesOf(device: DeviceProperties): LowerOptions {
  const { lanes } = device.limits
  if (device.kind !== 'webgpu' || lanes === undefined) return TARGETS[targetOf(device)].lowering
  // WGSL's uniformity analysis is per block, not per lane.
  return { lanes, together: true }
}
