/** Which kernels store their tensors in the same way. */
import { coordStepsKey } from '../schedule/coords/steps.ts'
import type { Compilation } from './compile.ts'

/** What makes arrays what they are: steps on coordinates but for the order of loops. Empty where there are none. */
export function formatKey({ coordSteps }: Pick<Compilation, 'coordSteps'>): string {
  const kept = coordSteps.filter((s) => s.kind !== 'reorder')
  return kept.length === 0 ? '' : coordStepsKey(kept, false)
}
