/** Default schedules: every kernel has one, after any steps, and computes with it what the reference computes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { carriedOut, caseOf, numbers, parameters } from './property-cases.ts'

test('default schedules terminate, and do not change results', async () => {
  const device = createCpuDevice()
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = caseOf(choices, 2)
      if (!k) return
      const compilation = k.compilation.parallel()
      await carriedOut(k, async () => {
        agreeOnStages(compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, compilation, k.bound, k.expected)).toBe(true)
      })
    }),
    parameters(20),
  )
}, 600_000)
