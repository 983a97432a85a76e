/** Binding of values to kernels. */
import { type Coroutine, runSync } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type BindOptions, bindingSteps as stepsOf } from './binding-steps.ts'
import { FORMAT_CODE } from './format-code.ts'
import { RARE_INPUTS } from './rare-inputs.ts'
import type { Bound, Inputs } from './types.ts'

export type { Bound, Inputs, PartFormat, TensorFormat } from './types.ts'

/** Binds values to a (scheduled) kernel. Throws SptError as `stepsOf`. */
export const bindInputs = (kernel: Kernel1, inputs: Inputs, options: BindOptions = {}): Bound =>
  runSync(bindingSteps(kernel, inputs, options))

/** `bindInputs` in steps. */
export const bindingSteps = (kernel: Kernel1, inputs: Inputs, options: BindOptions = {}): Coroutine<Bound> =>
  stepsOf(kernel, inputs, options, RARE_INPUTS, FORMAT_CODE)
