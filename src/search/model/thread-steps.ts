/** Statements and waits of one thread, on average and at most. */
import type { Serial } from './work.ts'

const NONE: Serial = { mean: 0, most: 0 }

/** Of one thread. */
export interface Steps {
  readonly steps: Serial
  readonly rounds: Serial
}

export const IDLE: Steps = { steps: NONE, rounds: NONE }

const plus = (a: Serial, b: Serial): Serial => ({ mean: a.mean + b.mean, most: a.most + b.most })
export const both = (a: Steps, b: Steps): Steps => ({
  steps: plus(a.steps, b.steps),
  rounds: plus(a.rounds, b.rounds),
})
export const repeated = (a: Serial, n: number): Serial => ({ mean: a.mean * n, most: a.most * n })
