/** Options of a workspace, with defaults. */
import type { Device } from '../../runtime/device.ts'
import { expectArgument, expectOptions } from '../inputs/argument-checks.ts'

export interface WorkspaceOptions {
  /**
   * Outputs and temporaries of equal size share memory, so a run overwrites the results of another kernel. For measurements.
   * Default false.
   */
  readonly shareOutputs?: boolean
  /** Bytes of converted tensors that stay on the host, least recently used first out; default 1 GiB. */
  readonly hostCacheBytes?: number
  /** Rejects formats that store far more than the tensor (`bind/too-many-elements`), for searches; default false. */
  readonly limitExpansion?: boolean
  /**
   * Number of elements from which a tensor is converted on the device; default 2²², on the CPU never. Smaller tensors
   * convert faster on the host than the conversion kernels compile.
   */
  readonly deviceConversionThreshold?: number
}

const CONVERSION_THRESHOLD = 2 ** 22

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
