/** The same law on WebGPU (SwiftShader where there is no GPU): fewer cases, since each launch is compiled. */
import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import { agreeOnDevice } from './agree.ts'
import { carriedOut, caseOf, numbers, parameters } from './law.ts'

/**
 * SwiftShader needs minutes and gigabytes for long texts (unrolled searches) and for long expressions (lookups in the
 * conditions of lookups): those run on the other devices.
 */
const MAX_TEXT = 12_000
const MAX_LINE = 2_500
const isLong = (text: string): boolean =>
  text.length > MAX_TEXT || text.split('\n').some((line) => line.length > MAX_LINE)
let device: Device

beforeAll(async () => {
  device = await createNodeWebGpu()
}, 120_000)
afterAll(async () => {
  await device.dispose()
})

test('webgpu agrees with the reference, under every legal schedule', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = caseOf(choices, 12)
      if (!k) return
      await carriedOut(k, async () => {
        if (k.compilation.texts('wgsl').some((t) => isLong(t.text))) return
        await agreeOnDevice(device, k.compilation, k.bound, k.expected)
      })
    }),
    parameters(25),
  )
}, 3_600_000)
