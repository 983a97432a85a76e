/**
 * Formats change no result: generated programs whose tensors are stored in any format or composition, under random
 * steps for each part and for all, at every stage and on the cpu.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { SEED } from '../support/cases.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { carriedOut, numbers, parameters } from './property-cases.ts'

let pool: Pool

beforeAll(async () => {
  pool = await poolOf(SEED)
})

test('every stage and the cpu agree with the reference, in every format', async () => {
  const device = createCpuDevice()
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = formatCase(choices, pool, 8)
      if (!k) return
      await carriedOut(k, async () => {
        agreeOnStages(k.compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, k.compilation, k.bound, k.expected)).toBe(true)
      })
    }),
    parameters(20),
  )
}, 3_600_000)
