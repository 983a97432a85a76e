/**
 * Formats change no result: generated programs whose tensors are stored in any format or composition, under random
 * steps for each part and for all, at every stage and on the cpu.
 */
import { beforeAll, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { SEED } from '../support/cases.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { agreeInCases } from './property-cases.ts'

let pool: Pool

beforeAll(async () => {
  pool = await poolOf(SEED)
})

test('every stage and the cpu agree with the reference, in every format', async () => {
  const device = createCpuDevice()
  await agreeInCases(device, (choices) => formatCase(choices, pool, 8), 20)
}, 3_600_000)
