/** Tensors that are entered by coordinates, and those by whose coordinates, in formats: the result is that of the reference, or refused. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { attachedAxes } from '../support/attached-gen.ts'
import { SEED } from '../support/cases.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { agreeInCases, agreeOnWebGpu, inParallel, runs } from './property-cases.ts'

let device: Device
let pool: Pool

beforeAll(async () => {
  pool = await poolOf(SEED)
  device = await createNodeWebGpu()
})
afterAll(async () => {
  await device.dispose()
})

const CASES = 20

test('every stage and the cpu agree with the reference', async () => {
  const cpu = createCpuDevice()
  const seen = new Map<string, number>()
  await agreeInCases(
    cpu,
    (choices) => {
      const k = formatCase(choices, pool, 4, attachedAxes)
      for (const how of k.sample.uses) seen.set(how, (seen.get(how) ?? 0) + 1)
      return k
    },
    CASES,
  )
  if (runs(CASES) >= CASES) expect(seen.get('attached')).toBeGreaterThan(CASES / 5)
}, 3_600_000)

test('webgpu agrees with the reference', async () => {
  await agreeOnWebGpu(device, (choices) => inParallel(formatCase(choices, pool, 2, attachedAxes)), 5)
}, 3_600_000)
