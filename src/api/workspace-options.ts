/** What a workspace can be told. */
import type { Device } from '../runtime/device.ts'
import { expectArgument, expectOptions } from './argument-checks.ts'

export interface WorkspaceOptions {
  /**
   * Outputs and temporary arrays of the same size share memory as well: what one kernel has computed is gone when another
   * runs. For kernels that are measured, not read.
   */
  readonly shareOutputs?: boolean
  /** Bytes of converted tensors that are kept on the host; 1 GiB. Beyond it, those that were not used for longest are made again. */
  readonly hostCacheBytes?: number
  /** Refuses formats that multiply what there is (`bind/too-many-elements`): for searches, which try any. False. */
  readonly limitExpansion?: boolean
  /**
   * Elements of a tensor from which on it is brought into formats on the device; 2²², on cpu none is. Below, the device's
   * kernels take longer to compile than the host's conversion takes.
   */
  readonly deviceConversionThreshold?: number
}

const CONVERSION_THRESHOLD = 2 ** 22

/** What was given, and the usual. @throws SptError `api/argument`, `api/unknown-option` */
export function checkedOptions(device: Device, options: WorkspaceOptions): Required<WorkspaceOptions> {
  expectOptions('Workspace', options, [
    'shareOutputs',
    'hostCacheBytes',
    'limitExpansion',
    'deviceConversionThreshold',
  ])
  const elements = device.kind === 'cpu' ? Number.POSITIVE_INFINITY : CONVERSION_THRESHOLD
  const {
    shareOutputs = false,
    hostCacheBytes = 2 ** 30,
    limitExpansion = false,
    deviceConversionThreshold = elements,
  } = options
  const isSize = typeof hostCacheBytes === 'number' && hostCacheBytes >= 0
  expectArgument(isSize, 'hostCacheBytes', hostCacheBytes, 'bytes, 0 or more')
  expectArgument(typeof limitExpansion === 'boolean', 'limitExpansion', limitExpansion, 'true or false')
  const isCount = typeof deviceConversionThreshold === 'number' && deviceConversionThreshold >= 0
  expectArgument(
    isCount,
    'deviceConversionThreshold',
    deviceConversionThreshold,
    'a number of elements, 0 or more',
  )
  return { shareOutputs, hostCacheBytes, limitExpansion, deviceConversionThreshold }
}
