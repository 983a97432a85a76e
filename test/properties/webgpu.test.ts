/** The same property on WebGPU (SwiftShader where there is no GPU): fewer cases, since each launch is compiled. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { inPlace } from '../support/in-place-gen.ts'
import { sharing } from '../support/schedule-gen.ts'
import { sketching } from '../support/sketch-gen.ts'
import { agreeOnWebGpu, type Case, caseOf, inParallel } from './property-cases.ts'

let device: Device

beforeAll(async () => {
  device = await createNodeWebGpu()
})
afterAll(async () => {
  await device.dispose()
})

test('webgpu agrees with the reference, under every legal schedule', async () => {
  await agreeOnWebGpu(device, (choices) => caseOf(choices, 12), 8)
}, 3_600_000)

test('webgpu agrees if conditions read values that are updated in place', async () => {
  await agreeOnWebGpu(device, (choices) => caseOf(choices, 10, inPlace, sharing), 6)
}, 3_600_000)

test('webgpu agrees under sketches', async () => {
  await agreeOnWebGpu(device, (choices) => caseOf(choices, 0, undefined, sketching('webgpu')), 4)
}, 3_600_000)

test('webgpu agrees without a schedule, and under the default one', async () => {
  for (const as of [(k: Case) => k, inParallel])
    await agreeOnWebGpu(device, (choices) => as(caseOf(choices, 0)), 6)
}, 3_600_000)

test.each([
  'bool: H[X[i] % b] or= X[i] > 40',
  'u8: H[X[i] % b] += u8(1)',
  'i8: H[X[i] % b] min= i8(X[i])',
  'f16 accumulate f32: H[X[i] % b] += 0.5',
  'f32: H[X[i] % b] *= 2.0',
  'u32: H[X[i] % b] += u32(X[i])',
])('histograms need no schedule: %s', async (what) => {
  const [type, update] = what.split(': ') as [string, string]
  const [dtype, ...more] = type.split(' ') as [string, ...string[]]
  const program = parseProgram(`kernel h(n: size, b: size) {
  axis i = dense_fixed(n) axis k = dense_fixed(b)
  buffer X: i32[i] in buffer H: ${dtype}[k] out ${more.join(' ')}
  iterate s [i] as R { ${update} }
}`)
  const compiled = await program.kernel().build(device)
  const X = Int32Array.from({ length: 100 }, (_, k) => (k * 37) % 101)
  const prepared = await compiled.bind({ X, n: 100, b: 7 })
  expect((await prepared.verify()).problems).toEqual([])
})
