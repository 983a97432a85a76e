/**
 * The property that everything else serves: whatever the program, the data and the legal schedule, every stage and
 * the emitted JavaScript compute what the reference computes, to the last bit.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { carriedOut, caseOf, numbers, parameters } from './property-cases.ts'

test('every stage and the cpu agree with the reference, under every legal schedule', async () => {
  const device = createCpuDevice()
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = caseOf(choices, 12)
      if (!k) return
      await carriedOut(k, async () => {
        agreeOnStages(k.compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, k.compilation, k.bound, k.expected)).toBe(true)
      })
    }),
    parameters(40),
  )
}, 3_600_000)
