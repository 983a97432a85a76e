/** What is searched where nobody names a space. */
import type { ChoiceInputs, ChosenFor } from '../api/choose.ts'
import { kindOf } from '../api/choose-device.ts'
import type { Kernel } from '../api/kernel.ts'
import { sketches } from './sketches.ts'
import type { KernelSpace } from './types.ts'

/**
 * The space of the kernel that is called after the device (`cpu_space`, `gpu_space`), else its sketches.
 * @throws SptError as `OpenSpace.on`, and as `sketches`
 */
export async function usualSpace(
  kernel: Kernel,
  on: ChosenFor,
  inputs: ChoiceInputs,
): Promise<KernelSpace<Kernel>> {
  const kind = kindOf(on)
  const own = kind === 'cpu' ? 'cpu_space' : 'gpu_space'
  return kernel.spaces.includes(own) ? kernel.space(own).on(on, inputs) : sketches(kernel, { device: kind })
}
