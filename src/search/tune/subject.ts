/** Subject of a tuning: kernel, data, device and options, sufficient to repeat it. */

import { declaredOf, sizesOf } from '../../api/inputs/bound-values.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { Inputs } from '../../run/bind/types.ts'
import type { Device } from '../../runtime/device.ts'
import { compilerVersion, deviceIdentity, tunedTensors } from '../records/identity.ts'
import type { DeviceIdentity, TunedTensor } from '../records/types.ts'

import type { PointSpace, StrategyFactory } from '../types.ts'

export interface TuneSubject {
  readonly kernel: string
  readonly device: DeviceIdentity
  /** Version and build of the package. */
  readonly compiler: string
  readonly space: string
  readonly strategy: string
  readonly seed: number
  /** Start time, as ISO 8601. */
  readonly started: string
  readonly sizes: Readonly<Record<string, number>>
  /** Inputs, random ones as well. */
  readonly tensors: readonly TunedTensor[]
}

export function subjectOf(
  kernel: Kernel,
  inputs: Inputs,
  device: Device,
  options: { readonly space: PointSpace; readonly strategy: string | StrategyFactory; readonly seed: number },
): TuneSubject {
  const { tensors = {}, params = {} } = inputs
  return {
    kernel: kernel.name,
    device: deviceIdentity(device),
    compiler: compilerVersion(),
    space: options.space.name,
    strategy: typeof options.strategy === 'string' ? options.strategy : options.strategy.name || 'a function',
    seed: options.seed,
    started: new Date().toISOString(),
    sizes: Object.fromEntries(
      sizesOf(kernel.source, {
        tensors: declaredOf(kernel.source, tensors, kernel.allFormatInputs),
        params,
        resident: {},
      }),
    ),
    tensors: tunedTensors(tensors),
  }
}
