/** sparsetile/device: tensors that stay on a device, their conversion to formats there, and measurements of commands. */
import { checkDevice, expectOptions } from './api/inputs/argument-checks.ts'
import { WORK_OPTIONS, type WorkOptions } from './ast/work.ts'
import type { Command, Device } from './runtime/device.ts'
import { type Measurement, type MeasureOptions, measure as measureCommands } from './runtime/measure.ts'

export { type DeviceTensorOptions, deviceTensor } from './api/inputs/device-tensor.ts'
export type * from './api/resident/resident.ts'
export {
  bindResident,
  convert,
  convertForKernel,
  planConversion,
  ResidentParts,
  releaseConversions,
  storageFormat,
  upload,
} from './api/resident/resident.ts'
export type { CostModel } from './cost-model/learned/model.ts'
export { useCostModel } from './cost-model/learned/trained-models.ts'
export type { CallersDense } from './run/execution/external-memory.ts'
export type {
  Command,
  Device,
  DeviceBuffer,
  DeviceEvent,
  GpuBufferLike,
  GpuDeviceLike,
  GpuEncoderLike,
  Graph,
  NativeMemory,
  NativeRange,
  Stream,
} from './runtime/device.ts'
export type { Measurement, MeasureOptions } from './runtime/measure.ts'

/** Times commands on a device. @throws SptError `measure/options`, `api/argument`, and as `Device.run` */
export async function measure(
  device: Device,
  commands: readonly Command[],
  options: MeasureOptions & WorkOptions = {},
): Promise<Measurement> {
  expectOptions('measure', options, ['warmups', 'repeats', 'flush', 'batch', 'by', ...WORK_OPTIONS])
  checkDevice(device)
  return measureCommands(device, commands, options)
}
