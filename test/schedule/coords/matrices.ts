/** Small matrices with values for the kernels of `formats.ts`. */
import fc from 'fast-check'
import type { Tensor } from '../../../src/storage/tensor.ts'
import type { Sample } from '../../support/program-gen.ts'
import type { Data } from './apply.ts'

/** `cells` of an m × n matrix, row-major. */
export function dataOf(m: number, n: number, cells: readonly number[], seed: number): Data {
  let state = seed
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state >>> 8) % 9
  }
  const many = (k: number): number[] => Array.from({ length: k }, random)
  const cut = (extent: number): number[] =>
    extent < 2 ? [0, extent] : [0, 1 + (random() % (extent - 1)), extent]
  const coords = m * n === 0 ? [] : cells.map((c) => [Math.floor(c / n), c % n])
  return {
    sizes: { m, n },
    coords,
    values: { A: coords.map(() => random() + 1) },
    dense: { B: many(n * 2), X: many(m * 2), x: many(m) },
    lists: { rows: cut(m), cols: cut(n) },
  }
}

export const matrices: fc.Arbitrary<Data> = fc
  .record({
    m: fc.integer({ min: 0, max: 7 }),
    n: fc.integer({ min: 0, max: 7 }),
    seed: fc.integer({ min: 1, max: 2 ** 20 }),
  })
  .chain(({ m, n, seed }) =>
    fc
      .uniqueArray(fc.nat(Math.max(0, m * n - 1)), { maxLength: m * n })
      .map((cells) => dataOf(m, n, cells, seed)),
  )

/** Without the dense inputs that a kernel does not have. */
export const only = (data: Data, buffers: readonly string[]): Data => ({
  ...data,
  dense: Object.fromEntries(Object.entries(data.dense).filter(([b]) => buffers.includes(b))),
})

/** For running it: `lists` are bound too where a format takes them. */
export function sampleOf(data: Data, lists: boolean): Sample {
  const { m, n } = data.sizes as { m: number; n: number }
  const coords = [0, 1].map((d) => Int32Array.from(data.coords, (c) => c[d]!))
  const shape: Readonly<Record<string, readonly number[]>> = { B: [n, 2], X: [m, 2], x: [m] }
  const dense = (values: readonly number[], s: readonly number[]): Tensor => ({
    kind: 'dense',
    shape: s,
    values: Int32Array.from(values),
    dtype: 'i32',
  })
  const tensors: Record<string, Tensor> = {
    A: { kind: 'coords', shape: [m, n], coords, values: Int32Array.from(data.values.A!), dtype: 'i32' },
  }
  for (const [name, values] of Object.entries(data.dense)) tensors[name] = dense(values, shape[name]!)
  if (lists)
    for (const [name, list] of Object.entries(data.lists ?? {})) tensors[name] = dense(list, [list.length])
  return {
    text: '',
    params: data.sizes,
    tensors,
    reference: { params: data.sizes, buffers: { ...data.dense, A: { coords, values: data.values.A! } } },
    uses: new Set(),
  }
}
