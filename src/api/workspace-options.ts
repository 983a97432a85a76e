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
  readonly keep?: number
  /** Refuses formats that multiply what there is (`bind/too-many-elements`): for searches, which try any. False. */
  readonly bounded?: boolean
  /**
   * Elements of a tensor from which on it is brought into formats on the device; 2²², on cpu none is. Below, the device's
   * kernels take longer to compile than the host's conversion takes.
   */
  readonly convertThere?: number
}

const CONVERTED_THERE = 2 ** 22

/** What was given, and the usual. @throws SptError `api/argument`, `api/unknown-option` */
export function checkedOptions(device: Device, options: WorkspaceOptions): Required<WorkspaceOptions> {
  expectOptions('Workspace', options, ['shareOutputs', 'keep', 'bounded', 'convertThere'])
  const usual = device.kind === 'cpu' ? Number.POSITIVE_INFINITY : CONVERTED_THERE
  const { shareOutputs = false, keep = 2 ** 30, bounded = false, convertThere = usual } = options
  expectArgument(typeof keep === 'number' && keep >= 0, 'keep', keep, 'bytes, 0 or more')
  expectArgument(typeof bounded === 'boolean', 'bounded', bounded, 'true or false')
  const isCount = typeof convertThere === 'number' && convertThere >= 0
  expectArgument(isCount, 'convertThere', convertThere, 'a number of elements, 0 or more')
  return { shareOutputs, keep, bounded, convertThere }
}
