/** `--space`: a space of the kernel, or its sketches. */
import type { ChoiceInputs, ChosenFor } from '../../api/choose.ts'
import { kindOf } from '../../api/choose-device.ts'
import type { Kernel } from '../../api/kernel.ts'
import type { KernelSpace } from '../../search/types.ts'
import type { Call, OptionSpec } from '../command.ts'
import { scheduleCall } from '../schedule-call.ts'
import { misused } from '../usage.ts'

const SKETCHES = 'sketches'

export const SPACE: OptionSpec = {
  flags: '--space <NAME>',
  about: `A space of the kernel, gpu(16) with arguments, or ${SKETCHES}`,
}

/**
 * The space that was asked for; else the one of the kernel that is called after the device, else its sketches.
 * @throws SptError `api/unknown-space`, `space/empty`, `choose/…`, as `sketches`
 */
export async function spaceOf(
  call: Call,
  kernel: Kernel,
  on: ChosenFor,
  inputs: ChoiceInputs,
): Promise<KernelSpace<Kernel>> {
  const kind = kindOf(on)
  const own = kind === 'cpu' ? 'cpu_space' : 'gpu_space'
  const { name, args, named } = scheduleCall(call, 'space') ?? {
    name: kernel.spaces.includes(own) ? own : SKETCHES,
    args: [],
  }
  if (named && named.size > 0)
    misused({
      command: call.command,
      message: `--space ${call.one('space')} gives arguments by name`,
      expected: 'arguments by place: gpu(16)',
    })
  if (name !== SKETCHES || kernel.spaces.includes(name)) return kernel.space(name, ...args).on(on, inputs)
  const { sketches } = await import('../../search/sketches.ts')
  return sketches(kernel, { device: kind })
}
