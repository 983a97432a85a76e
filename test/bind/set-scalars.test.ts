/** New scalars of a binding: later runs, verification, and a rebuilt binding use them. */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { type Binding, type Device, dense, devices, load } from '../../src/node.ts'

const program = await load(`kernel k(m: size, alpha: f32, shift: i32, negate: bool) {
  axis i = dense_fixed(m)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate all [i] as S { y[i] = select(negate, -alpha, alpha) * x[i] + f32(shift) }
}`)
const all: Device[] = [await devices.cpu(), await devices.webgpu({ adapter: 'swiftshader' })]
afterAll(async () => {
  for (const d of all) await d.dispose()
})

const x = dense([3], Float32Array.of(1, 2, 4))
const read = async (b: Binding): Promise<number[]> => {
  await b.run()
  return [...(await b.get('y')).values!]
}

test.each(all)('runs use the scalars that were set last', async (device) => {
  const fn = await program.kernel().build(device)
  const scalars = fc.record({
    alpha: fc.integer({ min: -8, max: 8 }),
    shift: fc.integer({ min: -100, max: 100 }),
    negate: fc.boolean(),
  })
  const start = { alpha: 1, shift: 0, negate: false }
  const b = await fn.bind({ x, ...start })
  await fc.assert(
    fc.asyncProperty(scalars, async ({ alpha, shift, negate }) => {
      const set = [b.set('alpha', alpha), b.set('shift', shift), b.set('negate', negate)]
      expect(await read(b)).toEqual([1, 2, 4].map((v) => (negate ? -alpha : alpha) * v + shift))
      await Promise.all(set)
      expect((await b.verify()).verdict).toBe('agrees')
      const other = await b.rebuild(device)
      expect(await read(other)).toEqual(await read(b))
      other.free()
    }),
    { numRuns: 10 },
  )
  b.free()
})

test('rejected scalars change nothing', async () => {
  const b = await (await program.kernel().build(all[0]!)).bind({ x, alpha: 3, shift: 1, negate: 0 })
  const expected = await read(b)
  const rejected: [string, unknown, RegExp][] = [
    ['m', 4, /bind\/not-input: m is a size of kernel k/],
    ['shift', 1.5, /bind\/scalar-range: shift is 1.5/],
    ['shift', 2 ** 40, /bind\/scalar-range/],
    ['alpha', [2], /api\/argument: the value of alpha cannot be a list/],
    ['alpha', true, /api\/argument: the value of alpha cannot be true/],
    ['alpha', undefined, /api\/argument: the value of alpha cannot be undefined/],
  ]
  for (const [name, value, message] of rejected)
    await expect(b.set(name, value as number)).rejects.toThrow(message)
  expect(await read(b)).toEqual(expected)
})

test('a dispatch at run time measures with the new scalar', async () => {
  const above = await load(`import "sparsetile/kernels/formats.spt"
kernel product(m: size, k: size, low: f32) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer X: f32[i, q] in
  buffer A: f32[i, q] local
  buffer y: f32[i] out
  iterate cut [i, q] as SS { A[i, q] = select(X[i, q] > low, X[i, q], 0.0) }
  iterate mul [i, q] as SR { y[i] += A[i, q] * X[i, q] }
}
schedule product.live { A as panels(2, 2) live in place }
schedule product.plain { split mul.q by 2 }
schedule product.auto choose { when (fill_ratio(A, panels(2, 2)) < 0.5) live otherwise plain }`)
  const X = dense(
    [4, 4],
    Float32Array.from({ length: 16 }, (_, e) => e + 1),
  )
  const b = await (await above.kernel().build(all[0]!)).bind({ X, low: 15 })
  for (const [low, schedule] of [
    [15, 'live'],
    [0, 'plain'],
    [15, 'live'],
    [20, 'live'],
  ] as const) {
    // biome-ignore format: rows
    await b.set('low', low)
    // The dispatch measures other schedules from time to time.
    for (let run = 0; run < 40; run++) await b.run()
    const sums = [0, 1, 2, 3].map((i) => {
      const row = [1, 2, 3, 4].map((v) => v + 4 * i).filter((v) => v > low)
      return row.reduce((sum, v) => sum + v * v, 0)
    })
    expect([...(await b.get('y')).values!]).toEqual(sums)
    expect(b.selection!.text).toBe(schedule)
  }
})
