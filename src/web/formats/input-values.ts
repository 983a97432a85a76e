/** Inputs without a shape, and new values of inputs: loaded when a page first gives them. */
import { updateOf, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { type Inputs, namedInputs } from '../../api/inputs/flat-inputs.ts'
import type { Bindable } from '../../api/inputs/tensors.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Written, withValues } from '../../run/bind/results/update-values.ts'
import type { Bound } from '../../run/bind/types.ts'

export { RARE_INPUTS } from '../../run/bind/rare-inputs.ts'

/** Tensors, sizes and scalars. @throws SptError `api/argument`, `tensor/…`, `bind/…` */
export const valuesOf = (kernel: Kernel1, inputs: Inputs): ReturnType<typeof valuesIn> =>
  valuesIn(kernel, namedInputs('bind', inputs, {}))

/** The bound data with new values of an input. @throws SptError as `withValues` */
export const updated = (bound: Bound, name: string, values: Bindable): Written =>
  withValues(bound, name, updateOf(bound.kernel, name, values))
