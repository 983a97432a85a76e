/** Cost-model terms of trials, recorded so that a model can be trained on them (`calibrate/train.ts`). */
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type ModelData, termsOfCompilation } from '../../cost-model/prediction.ts'
import type { Terms } from '../../cost-model/terms.ts'
import { runOn } from '../../run/compile/default-schedules.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { modelInputs } from '../ranking/cost-model.ts'

/** Computes cost-model terms of scheduled kernels, analysing the inputs once; undefined if the model has no prediction. */
export function trialTerms(
  kernel: Kernel,
  kind: DeviceKind,
): (makeKernel: () => Kernel, inputs: RunInputs) => Terms | undefined {
  let data: ModelData | undefined
  return (makeKernel, inputs) => {
    const terms = resultOrError(() => {
      data ??= modelInputs(kernel, inputs)
      return termsOfCompilation(runOn(makeKernel(), kind).compilation, data)
    })
    return terms instanceof SptError ? undefined : terms
  }
}
