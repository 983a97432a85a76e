/** Default schedules: every kernel has one, after any steps, and computes with it what the reference computes. */
import { test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeInCases, caseOf, inParallel } from './property-cases.ts'

test('default schedules terminate, and do not change results', async () => {
  const device = createCpuDevice()
  await agreeInCases(device, (choices) => inParallel(caseOf(choices, 2)), 20)
})
