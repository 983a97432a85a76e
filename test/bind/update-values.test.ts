/** New values: for some of the coordinates that were bound (the others read the fill), of the shape that was bound. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toF16 } from '../../src/ir/values/half.ts'
import { coords, dense, devices, load, stored } from '../../src/node.ts'

const program = await load(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in fill 9
  buffer Y: f32[i, c] out
  iterate all [i, c] as SS { Y[i, c] = A[i, c] }
}`)

const [M, N] = [3, 4]
/** Some of them twice. */
const cells = fc.array(fc.nat(M * N - 1), { maxLength: M * N })

test('coordinates without a new value read the fill, in any order', async () => {
  const compiled = await program.kernel().build(await devices.cpu())
  await fc.assert(
    fc.asyncProperty(
      cells,
      fc.array(fc.boolean(), { minLength: M * N, maxLength: M * N }),
      async (held, keeps) => {
        const at = (list: readonly number[], values: readonly number[]) =>
          coords(
            [M, N],
            [list.map((e) => Math.floor(e / N)), list.map((e) => e % N)],
            Float32Array.from(values),
          )
        const prepared = await compiled.bind({ A: at(held, held) })
        const kept = [...new Set(held)].filter((_, k) => keeps[k]).toReversed()
        await prepared.set(
          'A',
          at(
            kept,
            kept.map((e) => -e - 1),
          ),
        )
        await prepared.run()
        const expected = Array.from({ length: M * N }, (_, e) => (kept.includes(e) ? -e - 1 : 9))
        expect([...(await prepared.get('Y')).values!]).toEqual(expected)
        prepared.free()
      },
    ),
  )
})

test('written values have the bound shape, and go to their coordinates', async () => {
  const compiled = await program.kernel().build(await devices.cpu())
  const csr = (shape: number[], at: number[], values: number[]) =>
    stored(
      shape,
      { j: { indptr: Int32Array.of(0, 2, 2), indices: Int32Array.from(at) } },
      Float32Array.from(values),
    )
  const prepared = await compiled.bind({ A: csr([2, 3], [0, 2], [1, 2]) })
  for (const other of [
    coords([1, 3], [[0], [0]], [5]),
    coords([2, 30], [[0], [0]], [5]),
    coords([3], [[0]], [5]),
    dense([1, 1], [5]),
    csr([20, 30], [0, 2], [5, 6]),
  ])
    await expect(prepared.set('A', other)).rejects.toThrow(/^bind\/(shape|rank)/)
  const read = async () => {
    await prepared.run()
    return [...(await prepared.get('Y')).values!]
  }
  await prepared.set('A', csr([2, 3], [0, 2], [5, 6]))
  expect(await read()).toEqual([5, 9, 6, 9, 9, 9])
  await expect(prepared.set('A', csr([2, 3], [0, 1], [7, 8]))).rejects.toThrow(/^bind\/absent-coordinate/)
  expect(await read()).toEqual([5, 9, 6, 9, 9, 9])
})

test('of a vector, in any order', async () => {
  const vector = await load(`kernel k(n: size) {
    axis j = sparse_variable(n)
    axis c = dense_fixed(n)
    buffer A: f32[j] in fill 9
    buffer Y: f32[c] out
    iterate all [c] as S { Y[c] = A[c] }
  }`)
  const compiled = await vector.kernel().build(await devices.cpu())
  const prepared = await compiled.bind({ A: coords([5], [[4, 0, 2]], [1, 2, 3]) })
  await prepared.set('A', coords([5], [[2, 4]], [5, 6]))
  await prepared.run()
  expect([...(await prepared.get('Y')).values!]).toEqual([9, 9, 5, 9, 6])
})

test('entries with equal coordinates have separate values, in their order', async () => {
  const several = await load(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n) nonunique
    buffer A: f32[i, j] in
    buffer O: f32[i, j] out
    iterate all [i, j] as SS { O[i, j] = A[i, j] }
  }`)
  const A = (rows: number[], columns: number[], values: number[]) =>
    coords([2, 3], [rows, columns], Float32Array.from(values))
  const compiled = await several.kernel().build(await devices.cpu())
  const prepared = await compiled.bind({ A: A([0, 0, 0, 1], [0, 1, 1, 2], [1, 2, 3, 4]) })
  await prepared.set('A', A([1, 0, 0, 0], [2, 1, 1, 0], [5, 6, 7, 8]))
  await prepared.run()
  expect([...(await prepared.get('O')).values!]).toEqual([8, 6, 7, 5])
})

test.each([
  ['nan', [1, Number.NaN, Number.NaN, 4], [1, Number.NaN, 5, 4], [3, Number.NaN, Number.NaN, 6]],
  ['0', [1, 0, -0, 4], [1, 0, 5, 4], [3, -0, 0, 6]],
])('fill values in ready-made blocks are padding: %s', async (fill, blocks, others, again) => {
  const text = `import "sparsetile/kernels/formats.spt"
  kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: f16[i, j] in fill ${fill}
    buffer Y: f32[i] out
    iterate all [i, j] as SR { if (A[i, j] > 0) { Y[i] += f32(A[i, j]) } }
  }`
  const compiled = await (await load(text))
    .kernel()
    .as('A', 'bsr', 2)
    .build(await devices.cpu(), { auto: false })
  const half = (of: readonly number[]) => Uint16Array.from(of, toF16)
  const arrays = { jo: { indptr: Int32Array.of(0, 1), indices: Int32Array.of(0) } }
  const A = stored([1, 1, 2, 2], arrays, half(blocks), 'f16')
  const prepared = await compiled.bind({ A, m: 2, n: 2 })
  await expect(prepared.set('A', half(others))).rejects.toThrow(/^bind\/absent-coordinate: position 2/)
  await prepared.set('A', half(again))
  await prepared.run()
  expect([...(await prepared.get('Y')).values!]).toEqual([3, 6])
  prepared.free()
})

test.each(['', 'csr', 'csc', 'bsr(2)'])(
  'a dense tensor stores the elements that differ from the fill value: %s',
  async (format) => {
    const text = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = ${format ? 'dense_fixed(n)' : 'sparse_variable(i, n)'}
    axis r = dense_fixed(m)
    axis c = dense_fixed(n)
    buffer A: f32[i, j] in fill 9
    buffer Y: f32[r, c] out
    iterate all [r, c] as SS { Y[r, c] = A[r, c] }
  }
  import "sparsetile/kernels/formats.spt"`
    const kernel = (await load(text)).kernel()
    const compiled = await (format ? kernel.as('A', format) : kernel).build(await devices.cpu())
    const values = [0, 9, 1, 9, 0, 0, 9, 2, 9, 9, -1, 0]
    const { Y } = await compiled({ A: dense([M, N], values) })
    expect([...Y!.values!]).toEqual(values)
  },
)

test('the bound data can be read after any number of updates', async () => {
  const copy = await load(`kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer A: f32[i] in
    buffer Y: f32[i] out
    iterate all [i] as S { Y[i] = A[i] }
  }`)
  const prepared = await (await copy.kernel().build(await devices.cpu())).bind({ A: [0] })
  // More updates than calls that may be nested.
  for (let n = 1; n <= 12_000; n++) await prepared.set('A', Float32Array.of(n))
  expect((await prepared.verify()).ok).toBe(true)
  expect([...(await prepared.get('Y')).values!]).toEqual([12_000])
  prepared.free()
})
