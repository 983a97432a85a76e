/** Steps on loops (Stage II) as plain data: the common form of `.spt` schedules, TypeScript calls, traces and JSON. */
import type { StepIn } from '../primitive.ts'
import { LOOP_STEPS } from '../primitives.ts'
import { stepText } from './step-data.ts'

/** A step on loops; `kind` is its word. */
export type LoopStep = StepIn<typeof LOOP_STEPS>

/** Returns a step as `.spt` text; `named` returns the current name of a handle's loop. */
export const printStep = (s: LoopStep, named?: (variable: string) => string): string =>
  stepText(LOOP_STEPS[s.kind], s, named)
