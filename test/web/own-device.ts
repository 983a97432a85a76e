/** A `GPUDevice` of the caller: the adapter that tests use, with all of its features and limits. */
import { adapterFeatures, adapterLimits } from '../../src/runtime/webgpu/limits.ts'
import { findAdapter } from '../../src/runtime/webgpu/node.ts'

export async function ownDevice(features?: readonly GPUFeatureName[]): Promise<GPUDevice> {
  const found = await findAdapter()
  if ('reason' in found) throw new Error(found.reason)
  const { adapter } = found
  return adapter.requestDevice({
    requiredFeatures: features ?? adapterFeatures(adapter, []),
    requiredLimits: adapterLimits(adapter),
  })
}
