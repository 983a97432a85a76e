/** `--space`: a space of the kernel, or its sketches. */
import type { ChoiceInputs, ChosenFor } from '../../api/choose.ts'
import type { Kernel } from '../../api/kernel.ts'
import type { KernelSpace } from '../../search/types.ts'
import type { Call, OptionSpec } from '../command.ts'
import { argumentsOf, scheduleCall } from '../schedule-call.ts'
import { misused } from '../usage.ts'

const SKETCHES = 'sketches'
/** Default number of points whose steps `spt show --space` applies. */
export const USUAL_SURVEY = 100

export const SPACE: OptionSpec = {
  flags: '--space <NAME>',
  about: `A space of the kernel, gpu(16) or gpu(rows = 16) with arguments, or ${SKETCHES}`,
}

/** Name of a space; sketches, named like the kernel, are shown as `sketches`. */
export const spaceName = (kernel: Kernel, { name }: KernelSpace<Kernel>): string =>
  name === kernel.name ? SKETCHES : name

/** The requested space, or the default one. @throws SptError `api/unknown-space`, `space/empty`, `choose/…`, as `sketches` */
export async function spaceOf(
  call: Call,
  kernel: Kernel,
  on: ChosenFor,
  inputs: ChoiceInputs,
): Promise<KernelSpace<Kernel>> {
  const asked = scheduleCall(call, 'space')
  if (!asked) {
    const { usualSpace } = await import('../../search/usual-space.ts')
    return usualSpace(kernel, on, inputs)
  }
  const { name } = asked
  if (name !== SKETCHES || kernel.spaces.includes(name)) {
    if (!kernel.spaces.includes(name)) kernel.space(name)
    return kernel.space(name, ...argumentsOf(kernel, asked, 'space')).on(on, inputs)
  }
  if (asked.args.length > 0 || (asked.named?.size ?? 0) > 0)
    misused({
      command: call.command,
      message: `--space ${call.one('space')}: ${SKETCHES} take no arguments`,
      expected: `--space ${SKETCHES}`,
    })
  const { sketchesFor } = await import('../../search/usual-space.ts')
  return sketchesFor(kernel, on, inputs)
}
