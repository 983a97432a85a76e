/** Dense tensors over axes that others are over, in formats, under default schedules on WebGPU. */
import { afterAll, beforeAll, test } from 'vitest'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { SEED } from '../support/cases.ts'
import { sharedAxes } from '../support/shared-axes-gen.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { agreeOnWebGpu, inParallel } from './property-cases.ts'

let device: Device
let pool: Pool

beforeAll(async () => {
  pool = await poolOf(SEED)
  device = await createNodeWebGpu()
})
afterAll(async () => {
  await device.dispose()
})

test('webgpu agrees with the reference', async () => {
  await agreeOnWebGpu(device, (choices) => inParallel(formatCase(choices, pool, 2, sharedAxes)), 10)
}, 3_600_000)
