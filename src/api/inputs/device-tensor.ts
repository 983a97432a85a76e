/** Dense tensors in device memory of the caller. */
import type { Dtype } from '../../ir/values/dtype.ts'
import { CallersDense } from '../../run/execution/external-memory.ts'
import type { Device, NativeMemory } from '../../runtime/device.ts'
import { storedBytes, wordDtype } from '../../runtime/webgpu/widened-elements.ts'
import { checkDevice, checkDtype, checkShape, expectArgument, expectOptions } from './argument-checks.ts'

export interface DeviceTensorOptions {
  readonly shape: readonly number[]
  /** Default f32. On WebGPU an element of a type narrower than 32 bits takes a 32-bit word, except f16 with `shader-f16`. */
  readonly dtype?: Dtype
  /** Byte at which the tensor begins; 0. On WebGPU a multiple of `minStorageBufferOffsetAlignment`. */
  readonly offset?: number
  /** Name in messages. */
  readonly label?: string
}

/**
 * A dense, row-major tensor in your `GPUBuffer`, at your CUDA address, or in your `ArrayBuffer` (cpu). Bind the tensor to inputs, outputs
 * or `inout` buffers; kernels use the memory in place. On WebGPU a tensor takes its bytes rounded up to a multiple of 16.
 * @throws SptError `api/argument`, `device/usage`, `device/range`, `device/foreign-buffer`, `device/freed-buffer`, `device/no-f64`
 */
export async function deviceTensor(
  device: Device,
  memory: NativeMemory,
  options: DeviceTensorOptions,
): Promise<CallersDense> {
  checkDevice(device)
  expectOptions('deviceTensor', options, ['shape', 'dtype', 'offset', 'label'])
  const { shape, dtype = 'f32', offset = 0, label = 'the tensor' } = options
  checkShape(shape)
  checkDtype(dtype)
  expectArgument(typeof label === 'string', 'the label', label, 'a string')
  if (device.storage === 'words') wordDtype(dtype, label)
  const bytes = shape.reduce((n, extent) => n * extent, 1) * storedBytes(device, dtype)
  const buffer = await device.wrap({ memory, offset, bytes }, label)
  return new CallersDense({ shape: [...shape], dtype, origin: label, device }, buffer)
}
