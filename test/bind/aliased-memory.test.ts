/** Tensors of one binding in overlapping memory of the caller. */
import { afterAll, expect, test } from 'vitest'
import { deviceTensor } from '../../src/device.ts'
import { coords, devices, load } from '../../src/node.ts'
import { codeOf } from '../support/device-suite.ts'

const cpu = await devices.cpu()
afterAll(() => cpu.dispose())
const program = await load(`kernel shift(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis d = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[d] in
  buffer z: f32[d] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] + 0.0 * z[j] }
}`)
const fn = await program.kernel('shift').build(cpu)
const A = coords(
  [3, 3],
  [
    [0, 1, 2],
    [1, 2, 0],
  ],
)
const at = (memory: ArrayBuffer, offset: number) => deviceTensor(cpu, memory, { shape: [3], offset })

test('an output must not overlap an input; inputs may share memory', async () => {
  const memory = new ArrayBuffer(64)
  new Float32Array(memory).set([1, 10, 100])
  const [x, overlapping, apart] = [await at(memory, 0), await at(memory, 8), await at(memory, 16)]
  for (const y of [x, overlapping])
    expect(await codeOf(() => fn.bind({ A, x, z: x, y }))).toBe('device/aliased-arguments')
  using b = await fn.bind({ A, x, z: x, y: apart })
  await b.run()
  expect([...new Float32Array(memory, 16, 3)]).toEqual([10, 100, 1])
})

test('an input that overlaps another input and the output', async () => {
  const memory = new ArrayBuffer(64)
  const long = await deviceTensor(cpu, memory, { shape: [6], offset: 0 })
  const [x, y] = [await at(memory, 0), await at(memory, 16)]
  const wide = await load(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis d = dense_fixed(n)
  buffer x: f32[i] in
  buffer y: f32[i] out
  buffer z: f32[d] in
  iterate sum [i] as S { y[i] = x[i] + z[i + 0] }
}`)
  const add = await wide.kernel('k').build(cpu)
  expect(await codeOf(() => add.bind({ x, y, z: long }))).toBe('device/aliased-arguments')
})
