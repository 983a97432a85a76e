/** The property of formats on WebGPU (SwiftShader where there is no GPU): fewer cases, since each launch is compiled. */
import { afterAll, beforeAll, test } from 'vitest'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { SEED } from '../support/cases.ts'
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

test('webgpu agrees with the reference in every format, also under default schedules', async () => {
  await agreeOnWebGpu(device, (choices) => inParallel(formatCase(choices, pool, 3)), 12)
}, 3_600_000)
