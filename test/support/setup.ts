/** All properties take their cases from the seed of the run (`cases.ts`), which failures name. */
import fc from 'fast-check'
import { beforeEach } from 'vitest'
import { runs, SEED } from './cases.ts'

fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: SEED,
  numRuns: runs(100),
  // Shrinking a program takes minutes.
  endOnFailure: process.env.SPT_FIRST !== undefined,
})

beforeEach(({ onTestFailed, task }) => {
  onTestFailed(() => console.error(`SPT_SEED=${SEED} replays ${task.name}`))
})
