/** `--space`: a space of the kernel, or its sketches. */

import type { SelectionContext, SelectionInputs } from '../../api/dispatch/schedule-selection.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { KernelSpace } from '../../search/types.ts'
import type { Call, OptionSpec } from '../arguments/command.ts'
import { argumentsOf, scheduleCall } from '../arguments/schedule-call.ts'
import { rejectUsage } from '../arguments/usage.ts'

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
    return kernel.space(name, ...argumentsOf(kernel, requested, 'space')).bind(context, inputs)
  }
  if (requested.args.length > 0 || (requested.named?.size ?? 0) > 0)
    rejectUsage({
      command: call.command,
      message: `--space ${call.one('space')}: ${SKETCHES} take no arguments`,
      expected: `--space ${SKETCHES}`,
    })
  const { sketchesFor } = await import('../../search/spaces/sketches.ts')
  return sketchesFor(kernel, context, inputs)
}
