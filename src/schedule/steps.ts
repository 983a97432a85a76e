/**
 * Steps on loops (Stage II) as plain data: what a `.spt` schedule and the TypeScript calls both become, what a
 * trace holds, and what JSON carries.
 */
import type { StepIn } from './primitive.ts'
import { LOOP_STEPS } from './primitives.ts'
import { stepText } from './step-data.ts'

/** A step on loops, by `kind`, its word. */
export type LoopStep = StepIn<typeof LOOP_STEPS>

/** A step as the language writes it; `named` says what handles are called where it is applied. */
export const printStep = (s: LoopStep, named?: (variable: string) => string): string =>
  stepText(LOOP_STEPS[s.kind], s, named)
