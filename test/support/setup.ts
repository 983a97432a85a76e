/** All properties take their cases from the seed of the run (`cases.ts`), which failures name. */
import fc from 'fast-check'
import { beforeEach } from 'vitest'
import { runs, SEED } from './cases.ts'
import { TIME_LIMIT } from './time-limit.ts'

fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: SEED,
  numRuns: runs(100),
  // Shrinking a program takes minutes. The smallest counterexample so far is reported before the test counts as hanging.
  endOnFailure: process.env.SPT_FAIL_FAST !== undefined,
  interruptAfterTimeLimit: TIME_LIMIT / 2,
  // The one case that a failure names beside its seed: with `-t`, since other properties have other cases there.
  ...(process.env.SPT_PATH ? { path: process.env.SPT_PATH } : {}),
})

// Dawn asks by setImmediate, round after round, whether a GPU is done: a core that software devices could use, too.
// What resolves a promise is native, too, but no constructor.
const native = (f: () => void): boolean =>
  'prototype' in f && Function.prototype.toString.call(f).includes('[native code]')
const immediate = globalThis.setImmediate
if (immediate.name !== 'calmly') {
  const calmly = (f: () => void, ...args: []) => (native(f) ? setTimeout(f, 1) : immediate(f, ...args))
  globalThis.setImmediate = Object.assign(calmly, immediate) as unknown as typeof setImmediate
}

beforeEach(({ onTestFailed, task }) => {
  onTestFailed(() => console.error(`SPT_SEED=${SEED} replays ${task.name}`))
})
