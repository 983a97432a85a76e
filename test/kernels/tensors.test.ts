/** Kernels over trees of three levels: relations, sparse tensors, ragged batches. */
import { expect, test } from 'vitest'
import { coords, load } from '../../src/node.ts'
import { integers, type KernelCase, kernelSuite } from '../support/kernels.ts'
import { type Points, points, tensors, withIntegers } from './data.ts'

/** Rows by relations: where the tensor has something, but for every seventh, and every fifth where it may have nothing. */
function relationsOfRows({ name, shape, columns: [r, i] }: Points): Points {
  const [relations, m] = shape as [number, number, number]
  const held = new Set(Array.from(r!, (relation, e) => i![e]! * relations + relation))
  let count = 0
  return points(name, [m, relations], ([row, relation]) =>
    held.has(row! * relations + relation!) ? count++ % 7 !== 6 : (row! + relation!) % 5 === 0,
  )
}

kernelSuite({
  file: 'kernels/rgcn.spt',
  cases: (kernel, schedule) =>
    tensors().map((p, k): KernelCase => {
      const [r, , n] = p.shape as [number, number, number]
      const normalised = kernel === 'rgcn_normalised'
      const [d, e] = [
        [5, 33],
        [0, 3],
        [3, 0],
        [1, 8],
      ].map((widths) => (schedule === 'ordered' ? widths.map((w) => 4 * w) : widths))[k % 4] as [
        number,
        number,
      ]
      return {
        name: `${p.name}, ${d} → ${e}`,
        inputs: {
          tensors: {
            A: withIntegers(p, 2),
            X: integers(n * d, 3),
            W: integers(r * d * e, 4),
            ...(normalised && { N: withIntegers(relationsOfRows(p), 5) }),
          },
          params: { d, e },
        },
        exact: true,
      }
    }),
})

test('RGCN sums by rows use no atomics', async () => {
  const texts = (await load('kernels/rgcn.spt')).kernel('rgcn_normalised').schedule('ordered').emit('wgsl')
  for (const { text } of texts) expect(text).not.toMatch(/atomic/)
  // Four neighbours are one vector where they are carried, where threads meet and where they are stored.
  expect(texts[0]!.text).not.toMatch(/\bK\[at_\d+\] =/)
  const sum = texts.at(-1)!.text
  expect(sum).toMatch(/\bY\[\(at_\d+\) >> 2u\] =/)
  expect(sum).toMatch(/\bY_shares\[[^\]>]+\] = vec4<f32>\(Y_shares_\d+ \+/)
  // Where a row of a tile in shared memory begins is a constant, of which addresses take nothing to compute.
  expect(texts[2]!.text).toMatch(/= Ss\[i32\(local\.y\) \+ 9i\];/)
  expect(sum).not.toMatch(/for \(var pv/)
})

test('gather-GEMM-scatter by rows of the result uses no atomics', async () => {
  // Nor are rows of a tile put together of their digits, of which one is of a single iteration, or loops left without any.
  const program = await load('kernels/gather-gemm-scatter.spt')
  for (const T of ['f32', 'f16', 'bf16'])
    for (const schedule of ['row_tiles', 'by_rows', 'ordered'])
      for (const { text } of program.kernel('gather_gemm_scatter', { T }).schedule(schedule).emit('wgsl'))
        expect(text).not.toMatch(/atomic|< 0i; |\/ \d+i \* \d+i \+/)
})

for (const file of ['kernels/gather-gemm-scatter.spt'])
  kernelSuite({
    file,
    cases: (_, schedule) =>
      tensors().map((p, k): KernelCase => {
        const [r, , n] = p.shape as [number, number, number]
        const [c, o] = [
          [5, 33],
          [0, 3],
          [3, 0],
          [32, 64],
        ].map((widths) =>
          schedule === 'by_rows' || schedule === 'ordered' ? widths.map((w) => 4 * w) : widths,
        )[k % 4] as [number, number]
        return {
          name: `${p.name}, ${c} → ${o}`,
          inputs: {
            tensors: { A: withIntegers(p, 2), X: integers(n * c, 3), W: integers(r * c * o, 4) },
            params: { channels: c, out_channels: o },
          },
          exact: true,
        }
      }),
  })

kernelSuite({
  file: 'kernels/tensor-products.spt',
  cases: (kernel) =>
    tensors().map((p, k): KernelCase => {
      const [, n, l] = p.shape as [number, number, number]
      const d = [5, 33, 0, 8][k % 4]!
      const factors: Record<string, Float32Array> =
        kernel === 'mttkrp' ? { B: integers(n * d, 3), C: integers(l * d, 4) } : { U: integers(l * d, 3) }
      return {
        name: `${p.name}, d = ${d}`,
        inputs: { tensors: { A: withIntegers(p, 2), ...factors }, params: { d } },
        exact: true,
      }
    }),
})

/** Batches of `rows × columns` as one tensor, ragged in both; `sizes` are [m, l, n] of each batch. */
function batches(name: string, sizes: readonly (readonly [number, number, number])[]): KernelCase {
  const largest = (d: 0 | 1 | 2): number => Math.max(0, ...sizes.map((s) => s[d]))
  const [m, l, n] = [largest(0), largest(1), largest(2)]
  const all = (rows: 0 | 1, cols: 1 | 2): Points =>
    points(name, [sizes.length, largest(rows), largest(cols)], ([b, i, j]) => {
      const s = sizes[b!]!
      return i! < s[rows] && j! < s[cols]
    })
  const structure = points(
    name,
    [sizes.length, m, n],
    ([b, i, j]) => i! < sizes[b!]![0] && j! < sizes[b!]![2],
  )
  return {
    name,
    inputs: {
      tensors: {
        A: withIntegers(all(0, 1), 2),
        B: withIntegers(all(1, 2), 3),
        o: coords(structure.shape, structure.columns),
      },
      params: { batches: sizes.length, m, l, n },
    },
    exact: true,
  }
}

kernelSuite({
  file: 'kernels/ragged-bmm.spt',
  cases: () => [
    batches('no batch', []),
    batches('one batch', [[3, 4, 5]]),
    batches('empty batches', [
      [0, 0, 0],
      [2, 3, 4],
      [0, 2, 1],
    ]),
    batches('nothing to add up', [
      [2, 0, 3],
      [1, 2, 2],
    ]),
    batches('no columns', [
      [2, 3, 0],
      [3, 2, 1],
    ]),
    batches('odd sizes', [
      [5, 7, 37],
      [1, 40, 3],
      [9, 2, 33],
      [4, 4, 32],
    ]),
  ],
})
