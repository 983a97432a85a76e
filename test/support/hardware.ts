import type { Device } from '../../src/runtime/device.ts'

/** The device as choices see a GPU: no rule of software adapters takes their place. */
export const asHardware = (device: Device): Device =>
  Object.defineProperty(device, 'isSoftware', { value: false })
