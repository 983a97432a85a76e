/** The default search space. */

import type { SelectionContext, SelectionInputs } from '../../api/dispatch/schedule-selection.ts'
import { kindOf } from '../../api/dispatch/selection-context.ts'
import { valuesIn } from '../../api/inputs/bound-inputs.ts'
import { declaredOf, sizesOf } from '../../api/inputs/bound-values.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { KernelSpace } from '../types.ts'
import { sketches } from './sketches.ts'

/**
 * The kernel's space named after the device (`cpu_space`, `gpu_space`), otherwise its sketches.
 * @throws SptError as `UnboundSpace.on`, and as `sketches`
 */
export async function usualSpace(
  kernel: Kernel,
  on: SelectionContext,
  inputs: SelectionInputs,
): Promise<KernelSpace<Kernel>> {
  const kind = kindOf(on)
  const own = kind === 'cpu' ? 'cpu_space' : 'gpu_space'
  return kernel.spaces.includes(own) ? kernel.space(own).bind(on, inputs) : sketchesFor(kernel, on, inputs)
}

/** Sketches for the sizes of the bound data. @throws SptError as `sketches` */
export function sketchesFor(
  kernel: Kernel,
  on: SelectionContext,
  inputs: SelectionInputs,
): KernelSpace<Kernel> {
  const { source } = kernel
  const names = new Set(source.params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  const { tensors = {}, params = {}, resident = {} } = inputs
  const known = sizesOf(source, {
    ...valuesIn(source, { tensors: declaredOf(source, tensors, kernel.allFormatInputs), params }),
    resident,
  })
  const sizes = Object.fromEntries([...known].filter(([name]) => names.has(name)))
  return sketches(kernel, { device: kindOf(on), sizes })
}
