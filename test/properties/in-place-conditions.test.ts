/**
 * Conditions that read what their own statements write are decided once, for all threads: by nobody's writes on the way,
 * and where all of those arrive that meet under them.
 */
import { test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { inPlace } from '../support/in-place-gen.ts'
import { schedule, sharing } from '../support/schedule-gen.ts'
import { agreeInCases, caseOf } from './property-cases.ts'

test('in-place updates equal the reference under every legal schedule', async () => {
  const device = createCpuDevice()
  await agreeInCases(
    device,
    (choices) => caseOf(choices, 10, inPlace, choices.at(-1)! % 3 === 0 ? schedule : sharing),
    20,
  )
}, 3_600_000)
