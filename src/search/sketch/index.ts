/**
 * Schedules from the shape of a kernel's nests alone: what loops are to the result, what they depend on, what is written
 * (the sketches of Ansor, Zheng et al., OSDI 2020, over the loops that formats make). It knows no operator and no format.
 * Each sketch is a list of decisions, whose first values are the best guess, and of ordinary steps that follow from them.
 */
import type { Kernel2 } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { Decisions } from './decisions.ts'
import { Draft, type Schedulable } from './draft.ts'
import { decisionNames } from './part-groups.ts'
import { sequential } from './sequential.ts'
import { nestShapes } from './strands.ts'

export { Decisions, openIn } from './decisions.ts'
export { Draft, type Schedulable } from './draft.ts'

/** The kinds of devices that sketches are for. */
export type SketchDevice = 'cpu' | 'webgpu' | 'cuda'

export type Sketch = <K extends Schedulable<K>>(draft: Draft<K>) => void

/** Asked again with every decision. */
const shapesOf = remembered((of: { readonly kernel: Kernel1; readonly loops: Kernel2 }) =>
  nestShapes(of.loops, decisionNames(of.kernel)),
)

/** The steps of the sketch that decisions lead to, for a kernel that has none on loops. */
export function sketch<K extends Schedulable<K>>(kernel: K, device: SketchDevice, d: Decisions): Sketch {
  const nests = shapesOf(kernel.compilation)
  void device
  return sequential(nests, d)
}

/** The kernel under its first sketch, the best guess. @throws SptError where a step is refused */
export function bestGuess<K extends Schedulable<K>>(kernel: K, device: SketchDevice): K {
  const draft = new Draft(kernel)
  sketch(kernel, device, new Decisions(null))(draft)
  return draft.kernel
}
