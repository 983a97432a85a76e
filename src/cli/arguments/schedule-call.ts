/** Schedules and spaces (`--space`) with arguments, as options name them. */

import type { SelectionContext, SelectionInputs } from '../../api/dispatch/device-facts.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { argumentsOf, parseScheduleCall, type ScheduleCall } from '../../api/kernels/schedule-call.ts'
import type { KernelSpace } from '../../search/types.ts'
import type { Call, OptionSpec } from './command.ts'

/** `S`, `S(1, 2)` or `S(1, lanes = 2)`, as reports print it. */
export function scheduleCall(
  call: Call,
  option: 'schedule' | 'space' = 'schedule',
): ScheduleCall | undefined {
  const text = call.one(option)
  if (text === undefined) return undefined
  return (
    parseScheduleCall(text) ??
    call.reject(`--${option} ${text} is not a ${option}`, {
      expected: 'a name, or a name with integers by place, then by name: gpu(8, 32), gpu(8, cols = 32)',
    })
  )
}

// `--space`: a space of the kernel, or its sketches.

const SKETCHES = 'sketches'
/** Default number of points whose steps `spt show --space` applies. */
export const DEFAULT_SURVEY = 100

export const SPACE: OptionSpec = {
  flags: '--space <NAME>',
  about: `A space of the kernel, gpu(16) or gpu(rows = 16) with arguments, or ${SKETCHES}`,
}

/** Display name of a space; the space of sketches is named like the kernel and shown as `sketches`. */
export const spaceName = (kernel: Kernel, { name }: KernelSpace<Kernel>): string =>
  name === kernel.name ? SKETCHES : name

/** The requested or default space. @throws SptError `api/unknown-space`, `space/empty`, `choose/…`, as `sketches` */
export async function spaceOf(
  call: Call,
  kernel: Kernel,
  context: SelectionContext,
  inputs: SelectionInputs,
): Promise<KernelSpace<Kernel>> {
  const requested = scheduleCall(call, 'space')
  if (!requested) {
    const { usualSpace } = await import('../../search/spaces/sketches.ts')
    return usualSpace(kernel, context, inputs)
  }
  const { name } = requested
  if (name !== SKETCHES || kernel.spaces.includes(name)) {
    if (!kernel.spaces.includes(name)) kernel.space(name)
    return kernel.space(name, ...argumentsOf(kernel, requested, 'space')).bind(context, ...flatInputs(inputs))
  }
  if (requested.args.length > 0 || (requested.named?.size ?? 0) > 0)
    call.reject(`--space ${call.one('space')}: ${SKETCHES} take no arguments`, {
      expected: `--space ${SKETCHES}`,
    })
  const { sketchesFor } = await import('../../search/spaces/sketches.ts')
  return sketchesFor(kernel, context, inputs)
}
