/** The law of formats on WebGPU (SwiftShader where there is no GPU): fewer cases, since each launch is compiled. */
import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import { SEED } from '../support/cases.ts'
import { agreeOnDevice } from './agree.ts'
import { formatCase, type Pool, poolOf } from './formats.ts'
import { carriedOut, numbers, parameters, tooLongForSwiftShader } from './law.ts'

let device: Device
let pool: Pool

beforeAll(async () => {
  pool = await poolOf(SEED)
  device = await createNodeWebGpu()
}, 120_000)
afterAll(async () => {
  await device.dispose()
})

test('webgpu agrees with the reference in every format, also under default schedules', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = formatCase(choices, pool, 3)
      if (!k) return
      await carriedOut(k, async () => {
        const compilation = k.compilation.parallel()
        if (tooLongForSwiftShader(compilation)) return
        await agreeOnDevice(device, compilation, k.bound, k.expected)
      })
    }),
    parameters(15),
  )
}, 3_600_000)
