/**
 * Conditions that read what their own statements write are decided once, for all threads: by nobody's writes on the way,
 * and where all of those arrive that meet under them.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { inPlace } from '../support/in-place-gen.ts'
import { schedule, sharing } from '../support/schedule-gen.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { carriedOut, caseOf, numbers, parameters } from './property-cases.ts'

test('in-place updates equal the reference under every legal schedule', async () => {
  const device = createCpuDevice()
  let made = 0
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = caseOf(choices, 10, inPlace, choices.at(-1)! % 3 === 0 ? schedule : sharing)
      if (!k) return
      made++
      await carriedOut(k, async () => {
        agreeOnStages(k.compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, k.compilation, k.bound, k.expected)).toBe(true)
      })
    }),
    parameters(20),
  )
  expect(made).toBeGreaterThan(0)
}, 3_600_000)
