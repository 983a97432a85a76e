/** Small matrices with values for the kernels of `formats.ts`. */
import fc from 'fast-check'
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
