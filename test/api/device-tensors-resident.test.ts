/** Dense tensors in memory of the caller together with sparse tensors on the device: no copy, and results of the host. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bindResident, convertForKernel, deviceTensor, upload } from '../../src/device.ts'
import { coords, dense, load } from '../../src/node.ts'
import { type Callers, onCpu, onWebGpu } from '../support/callers-memory.ts'
import { codeOf } from '../support/device-suite.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
kernel step(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] inout
  buffer B: f32[jd, f] in
  buffer bias: f32[f] in
  buffer T: f32[i, f] inout
  buffer C: f32[i, f] out
  buffer D: f32[i, j] out
  iterate scale [i, j] as SS { A[i, j] = A[i, j] * 2.0 }
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
  iterate add [i, f] as SS { T[i, f] = T[i, f] + C[i, f] * bias[f] }
  iterate sample [i, j, f] as SSR { D[i, j] += T[i, f] * B[j, f] }
}`
const [m, n, d] = [3, 4, 2]
const A = coords(
  [m, n],
  [
    [0, 0, 2, 2],
    [1, 3, 0, 2],
  ],
  new Float32Array([1, 2, 3, 4]),
)
const B = new Float32Array([1, 2, 3, 4, 5, 6, 7, 8])
const [bias, T] = [new Float32Array([2, 1]), new Float32Array([1, 0, 2, 0, 3, 0])]

/** The results on the host: of the sparse tensors, by element. */
async function expected(on: Callers, format: string, runs: number) {
  const built = await (await load(TEXT)).kernel('step').as('A', format).build(on.device)
  const binding = await built.bind({ A, B: dense([n, d], B), bias: dense([d], bias), T: dense([m, d], T) })
  for (let k = 0; k < runs; k++) await binding.run()
  const [out, updated, sampled] = [await binding.get('C'), await binding.get('T'), await binding.get('D')]
  binding.free()
  return { C: [...out.values!], T: [...updated.values!], D: sampled }
}

for (const [name, open] of [
  ['cpu', onCpu],
  ['webgpu', onWebGpu],
] as const)
  describe(`memory of the caller and sparse tensors on ${name}`, () => {
    let on: Callers
    beforeAll(async () => {
      on = await open()
    })
    afterAll(() => on.close())

    const written = (values: Float32Array<ArrayBuffer>, offset = 0) => {
      const memory = on.make(1024)
      on.write(memory, offset, values)
      return memory
    }

    for (const format of ['csr', 'coo', 'ell(2)'])
      test(`${format}: inputs, updated tensors and outputs`, async () => {
        const { device } = on
        const built = await (await load(TEXT)).kernel('step').as('A', format).build(device)
        const stored = await convertForKernel(built, 'A', await upload(device, A))
        const [own, updated, out] = [written(B, 256), written(T), on.make(1024)]
        const tensors = {
          B: await deviceTensor(device, own, { shape: [n, d], offset: 256 }),
          bias: await deviceTensor(device, written(bias), { shape: [d] }),
          T: await deviceTensor(device, updated, { shape: [m, d] }),
          C: await deviceTensor(device, out, { shape: [m, d], offset: 512 }),
        }
        const binding = await bindResident(built, { A: stored, ...tensors })
        for (const runs of [1, 2]) {
          await binding.run()
          const host = await expected(on, format, runs)
          expect([...(await on.read(out)).slice(128, 128 + m * d)]).toEqual(host.C)
          expect([...(await on.read(updated)).slice(0, m * d)]).toEqual(host.T)
          expect(await binding.get('D')).toEqual(host.D)
        }
        on.write(own, 256, new Float32Array(B.map((x) => -x)))
        expect((await binding.verify()).problems).toEqual([])
        binding.free()
      })

    test('wrong tensors are rejected with the code of dense bindings', async () => {
      const { device } = on
      const built = await (await load(TEXT)).kernel('step').as('A', 'csr').build(device)
      const stored = await convertForKernel(built, 'A', await upload(device, A))
      const memory = on.make(1024)
      const good = { A: stored, B: dense([n, d], B), bias: dense([d], bias), T: dense([m, d], T) }
      const bound = (tensors: object) => bindResident(built, { ...good, ...tensors })
      const code = async (tensors: object) => codeOf(() => bound(tensors))
      expect(await code({ C: await deviceTensor(device, memory, { shape: [m + 1, d] }) })).toBe(
        'bind/size-mismatch',
      )
      expect(await code({ B: await deviceTensor(device, memory, { shape: [n] }) })).toBe('bind/rank')
      expect(await code({ B: await deviceTensor(device, memory, { shape: [n, d], dtype: 'i32' }) })).toBe(
        'convert/dtype',
      )
      expect(await code({ A: await deviceTensor(device, memory, { shape: [m, n] }) })).toBe('run/resident')
      const D = await deviceTensor(device, memory, { shape: [m, n] })
      await expect(bound({ D })).rejects.toThrow(
        'convert/shared: D is a dense tensor, and has the structure of A, which is resident',
      )
      const same = await deviceTensor(device, memory, { shape: [m, d] })
      expect(await code({ T: same, C: same })).toBe('device/aliased-arguments')
    })
  })
