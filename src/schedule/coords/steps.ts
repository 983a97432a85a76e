/** Steps on coordinates (Stage I) as plain data; iterators are named as loops are. */
import type { Kernel1 } from '../../ir/stage1.ts'
import type { StepIn } from '../primitive.ts'
import { checkStep, stepText } from '../step-data.ts'
import type { CoordPrimitive } from './primitive.ts'
import { COORD_STEPS } from './primitives.ts'

export type CoordStep = StepIn<typeof COORD_STEPS>

/** Applies one step. @throws SptError `schedule/…`, `format/…` where it could change the result */
export function applyCoordStep(kernel: Kernel1, step: CoordStep): Kernel1 {
  checkStep(step, COORD_STEPS, ' on coordinates')
  return (COORD_STEPS[step.kind] as CoordPrimitive<CoordStep>).apply(kernel, step)
}

/** A step as the language writes it; of formats, those that are declared. */
export const printCoordStep = (step: CoordStep): string => stepText(COORD_STEPS[step.kind], step)
