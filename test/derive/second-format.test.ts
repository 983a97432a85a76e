/** `A as csc for backward`: a second format of a tensor for the iterations in which its gradients scatter. */
import { expect, test } from 'vitest'
import { coords, devices, type Kernel, load } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'

const TEXT = `import { csc, csr } from "sparsetile/kernels/formats.spt"
kernel layer(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis v = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[v, f] in
  buffer H: f32[v, f] local
  buffer C: f32[i, f] local
  buffer loss: f32[] out
  iterate gate [v, f] as SS { H[v, f] = tanh(B[v, f]) }
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * H[j, f] }
  iterate total [i, f] as RR { loss[] += C[i, f] * C[i, f] }
}
gradient step of layer by loss wrt (B)
gradient both of layer by loss wrt (A, B)
schedule step.columns { A as csc for sum_d_H }
schedule both.columns { A as csc for sum_d_H }
`
const SIZES = { m: 9, n: 12, d: 5 }

function inputs(seed: number) {
  const random = new Random(seed)
  const all = Array.from({ length: SIZES.m * SIZES.n }, (_, k) => k).filter(() => random.next() < 0.3)
  const values = (n: number) => Float32Array.from({ length: n }, () => random.next() - 0.5)
  const columns = [all.map((k) => Math.floor(k / SIZES.n)), all.map((k) => k % SIZES.n)]
  const A = coords([SIZES.m, SIZES.n], columns, values(all.length))
  return { A, B: values(SIZES.n * SIZES.d), other: values(all.length), d: SIZES.d }
}

test.each(['step', 'both'])('%s: results are equal on every device, also after an update', async (name) => {
  const kernel = (await load(TEXT)).kernel(name)
  const stored = kernel.schedule('columns')
  expect(stored.trace).toEqual(['A as csc for sum_d_H'])
  expect(kernel.replay(stored.toJSON()).show(1)).toBe(stored.show(1))
  expect(stored.show(1)).toContain('d_H[jo, f] += d_C[io, f] * A_copy[jo, io]')
  for (const device of [await devices.cpu(), await devices.webgpu()])
    for (const seed of [1, 2, 3]) {
      const { other, ...given } = inputs(seed)
      const results: number[][] = []
      for (const k of [kernel, stored]) {
        const binding = await (await k.build(device)).bind(given)
        await binding.run()
        expect((await binding.verify()).verdict).toBe('agrees')
        results.push([...(await binding.get('d_B')).values!])
        await binding.set('A', { ...given.A, values: other })
        await binding.run()
        expect((await binding.verify()).verdict).toBe('agrees')
        results.push([...(await binding.get('d_B')).values!])
        binding.free()
      }
      for (const [k, result] of results.slice(0, 2).entries())
        for (const [e, v] of result.entries()) expect(results[k + 2]![e]).toBeCloseTo(v, 5)
    }
})

test('gradients that scatter have no atomic updates with a second format', async () => {
  const kernel = (await load(TEXT)).kernel('step')
  const text = (k: Kernel) =>
    k
      .autoSchedule('webgpu', { m: 4096, n: 4096, d: 64 })
      .emit('wgsl')
      .map((x) => x.text)
      .join('\n')
  expect(text(kernel)).toMatch(/atomic/)
  expect(text(kernel.schedule('columns'))).not.toMatch(/atomic/)
})

test('random inputs: the copy is the original', async () => {
  const kernel = (await load(TEXT)).kernel('both').schedule('columns')
  const binding = await (await kernel.build(await devices.cpu())).bind(SIZES, { seed: 5 })
  expect((await binding.verify()).verdict).toBe('agrees')
})

test('several iterations, as a list with or without parentheses', async () => {
  const texts = ['sum, total', '(sum, total)'].map(
    (names) => `import { csc } from "sparsetile/kernels/formats.spt"
      kernel twice(m: size, n: size) {
        axis i = dense_fixed(m)
        axis j = sparse_variable(i, n)
        axis v = dense_fixed(n)
        buffer A: f32[i, j] in
        buffer y: f32[v] out
        buffer z: f32[v] out
        iterate sum [i, j] as RS { y[j] += A[i, j] }
        iterate total [i, j] as RS { z[j] += A[i, j] * A[i, j] }
      }
      schedule twice.columns { A as csc for ${names} }`,
  )
  const shown = await Promise.all(
    texts.map(async (t) => {
      const kernel = (await load(t)).kernel().schedule('columns')
      return [kernel.show(1), kernel.trace]
    }),
  )
  expect(shown[1]).toEqual(shown[0])
  expect(shown[0]![1]).toEqual(['A as csc for sum, total'])
  expect(shown[0]![0]).toContain('z[jo] += A[jo, io] * A[jo, io]')
})
