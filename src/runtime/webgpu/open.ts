/** Opens the WebGPU device, on an adapter or on the caller's `GPUDevice`. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord } from '../../ast/diagnostics/expect-argument.ts'
import type { Device } from '../device.ts'
import type { GpuDeviceLike } from '../native-memory.ts'
import { WebGpuDevice } from './device.ts'
import { adapterFeatures, adapterLimits, adapterName, lanesOf } from './limits.ts'
import type { WebGpuOptions } from './options.ts'
import { firstLine } from './session.ts'

/**
 * Opens a device on the adapter selected by `gpu`, with all of the adapter's limits, and with `shader-f16`, `subgroups` and
 * `timestamp-query` if it supports them. `obtained`: an adapter already obtained from `gpu`.
 * @throws SptError `device/absent` without an adapter
 */
export async function createWebGpuDevice(
  gpu: GPU,
  options: WebGpuOptions = {},
  obtained?: GPUAdapter,
): Promise<Device> {
  const adapter =
    obtained ??
    (await gpu.requestAdapter({
      powerPreference: options.powerPreference ?? 'high-performance',
      forceFallbackAdapter: options.forceFallbackAdapter ?? false,
    }))
  if (!adapter)
    failWith('device/absent', 'WebGPU has no adapter here', {
      hint: 'check that the browser has WebGPU enabled and the GPU driver is up to date',
    })
  const name = adapterName(adapter.info)
  const requiredFeatures = adapterFeatures(adapter, options.features ?? [])
  let device: GPUDevice
  try {
    device = await adapter.requestDevice({
      label: 'sparsetile',
      requiredFeatures,
      requiredLimits: adapterLimits(adapter),
    })
  } catch (e) {
    failWith('device/absent', `the adapter ${name} gave no device: ${firstLine((e as Error).message)}`, {
      hint: obtained
        ? 'take a new adapter: each gives one device'
        : 'check that the GPU driver is up to date',
    })
  }
  return new WebGpuDevice(device, adapter.info, await lanesOf(device, adapter.info.subgroupMinSize), true)
}

/**
 * A device on the caller's `GPUDevice`, with its features and limits. `dispose` frees our buffers only, and errors of the caller's own
 * calls stay with the caller.
 * @throws SptError `device/lost`
 */
export async function shareGpuDevice(callers: GpuDeviceLike): Promise<Device> {
  const device = callers as unknown as GPUDevice
  const isDevice = isRecord(device) && isRecord(device.queue) && typeof device.createBuffer === 'function'
  expectArgument(isDevice, 'the device', device, 'a GPUDevice: await adapter.requestDevice()')
  const info = device.adapterInfo ?? NO_INFO
  const lost = await Promise.race([device.lost, Promise.resolve()])
  if (lost)
    failWith('device/lost', `the GPUDevice was lost${lost.message ? ` (${lost.message.trim()})` : ''}`, {
      hint: 'request a new one: await adapter.requestDevice()',
    })
  return new WebGpuDevice(device, info, await lanesOf(device, info.subgroupMinSize), false)
}

/** Facts of an adapter in hosts without `GPUDevice.adapterInfo`. */
const NO_INFO = {
  description: '',
  device: '',
  vendor: '',
  architecture: '',
  isFallbackAdapter: false,
} as GPUAdapterInfo
