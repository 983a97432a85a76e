/** Long reductions into few elements: the auto-scheduler splits them into chunks, and results stay those of the reference. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Device, devices, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { runs } from '../support/cases.ts'

let gpu: Device
beforeAll(async () => {
  gpu = await createNodeWebGpu()
})
afterAll(async () => {
  await gpu.dispose()
})

const HEAD = `kernel sums(n: size, c: size, d: size) {
  axis i = dense_fixed(n)
  axis o = dense_fixed(c)
  axis k = dense_fixed(d)
  buffer X: f32[i, o] in
  buffer Y: f32[i, k] in
`
const KINDS = {
  scalar: `  buffer r: f32[] out
  iterate sum [i, o] as RR { r[] += X[i, o] * X[i, o] }
}`,
  columns: `  buffer r: f32[o] out
  iterate sum [i, o] as RS { r[o] += X[i, o] }
}`,
  maxima: `  buffer r: f32[o] out
  iterate sum [o, i] as SR { r[o] max= X[i, o] }
}`,
  product: `  buffer r: f32[o, k] out
  iterate sum [i, o, k] as RSS { r[o, k] += X[i, o] * Y[i, k] }
}`,
} as const

const splits = (trace: readonly string[]): number => trace.filter((s) => s.startsWith('rfactor')).length

test('sums of many rows into few elements are split, and agree with the reference', async () => {
  const shape = fc.record({
    kind: fc.constantFrom(...(Object.keys(KINDS) as (keyof typeof KINDS)[])),
    n: fc.integer({ min: 1024, max: 5000 }),
    c: fc.integer({ min: 1, max: 9 }),
    d: fc.integer({ min: 1, max: 70 }),
    seed: fc.nat(),
  })
  await fc.assert(
    fc.asyncProperty(shape, async ({ kind, n, c, d, seed }) => {
      const kernel = (await load(HEAD + KINDS[kind])).kernel()
      const sizes = { n, c, d }
      for (const device of ['webgpu', 'cuda'] as const)
        expect(splits(kernel.autoSchedule(device, sizes).trace)).toBe(1)
      const built = await kernel.autoSchedule('webgpu', sizes).build(gpu)
      const values = (width: number): Float32Array =>
        Float32Array.from({ length: n * width }, (_, k) => ((k * 7919 + seed) % 17) - 8)
      const bound = await built.bind({ X: values(c), Y: values(d), ...sizes })
      await bound.run()
      const { ok, problems } = await bound.verify()
      expect(problems).toEqual([])
      expect(ok).toBe(true)
      bound.free()
      built.release()
    }),
    { numRuns: runs(8) },
  )
})

test('short reductions, long ones of many elements and ones of unknown length stay whole', async () => {
  const kernel = (await load(HEAD + KINDS.columns)).kernel()
  for (const sizes of [{ n: 500, c: 4 }, { n: 4096, c: 100_000 }, {}])
    expect(splits(kernel.autoSchedule('cuda', sizes).trace)).toBe(0)
  expect(splits(kernel.autoSchedule('cpu', { n: 5000, c: 4 }).trace)).toBe(0)
  // The partial results would be larger than the operands.
  const product = (await load(HEAD + KINDS.product)).kernel()
  expect(splits(product.autoSchedule('cuda', { n: 1024, c: 256, d: 512 }).trace)).toBe(0)
})

test('a sum outside of the loops over its elements goes inside on the CPU, with its elements in registers', async () => {
  const kernel = (await load(HEAD + KINDS.product)).kernel()
  const sizes = { n: 50, c: 7, d: 12 }
  const scheduled = kernel.autoSchedule('cpu', sizes)
  expect(scheduled.trace.some((s) => /^cache_write r at \S+ in register$/.test(s))).toBe(true)
  const bound = await (await scheduled.build(await devices.cpu())).bind(sizes, { seed: 4 })
  await bound.run()
  expect((await bound.verify()).verdict).toBe('agrees')
})
