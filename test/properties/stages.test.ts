/**
 * The property that everything else serves: whatever the program, the data and the legal schedule, every stage and
 * the emitted JavaScript compute what the reference computes, to the last bit.
 */
import { test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeInCases, caseOf } from './property-cases.ts'

test('every stage and the cpu agree with the reference, under every legal schedule', async () => {
  const device = createCpuDevice()
  await agreeInCases(device, (choices) => caseOf(choices, 12), 40)
}, 3_600_000)
