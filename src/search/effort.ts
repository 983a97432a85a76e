/** What limits of time are measured in, so that they are the same on every machine. */
import type { OpenDecision } from './types.ts'

/** What it takes to ask a decision: itself, and each value that conditions were asked about. */
export const effortOf = (open: OpenDecision | null): number =>
  1 + (open?.considered ?? open?.values.length ?? 0)
