/** Keys for kernels that store their tensors identically. */
import { coordStepsKey } from '../../schedule/coordinates/steps.ts'
import type { Compilation } from './compile.ts'

/** Key of the steps that determine the stored arrays: all steps on coordinates except loop reordering. Empty if there are none. */
export function formatKey({ coordSteps }: Pick<Compilation, 'coordSteps'>): string {
  const kept = coordSteps.filter((s) => s.kind !== 'reorder')
  return kept.length === 0 ? '' : coordStepsKey(kept, false)
}
