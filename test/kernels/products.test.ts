/** Sparse matrix times vector and matrix, sampled products, dense products. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { devices, load, readTensor } from '../../src/node.ts'
import { useCostModel } from '../../src/search.ts'
import { sample } from '../support/cases.ts'
import type { KernelCase, Pattern } from '../support/kernels.ts'
import { integers, kernelSuite, matrix, normals, patterns } from '../support/kernels.ts'

const cora = await readTensor('data/cora.mtx')
const exact = (p: Pattern, inputs: KernelCase['inputs']): KernelCase => ({
  name: p.name,
  inputs,
  exact: true,
})

kernelSuite({
  file: 'kernels/spmv.spt',
  cases: () => [
    ...patterns().map((p) =>
      exact(p, { tensors: { A: matrix(p, integers(p.rows.length, 2)), x: integers(p.n, 3) } }),
    ),
    { name: 'cora', large: true, inputs: { tensors: { A: cora, x: integers(2708, 3) } }, exact: true },
  ],
})

/** Whether a 2:4 format holds it: at most two elements in four neighbours. */
function isTwoOfFour(p: Pattern): boolean {
  const found = new Map<string, number>()
  for (const [e, i] of p.rows.entries()) {
    const group = `${i} ${Math.floor(p.cols[e]! / 4)}`
    found.set(group, (found.get(group) ?? 0) + 1)
  }
  return [...found.values()].every((n) => n <= 2)
}

/** Elements of the longest row. */
const longest = (p: Pattern): number =>
  Math.max(0, ...Array.from({ length: p.m }, (_, i) => p.rows.filter((r) => r === i).length))

const productCases = (kernel: string, schedule: string | null): readonly KernelCase[] => [
  ...patterns().flatMap((p, k) => {
    if (schedule === 'nm' && !isTwoOfFour(p)) return []
    if (schedule === 'fixed_length' && (p.n === 0 || longest(p) > 32)) return []
    return [[1, 33, 40, 7][k % 4]!, 0].slice(0, k === 5 ? 2 : 1).map((d): KernelCase => {
      const B = integers(p.n * d, 3)
      const params = { d, n: p.n }
      const inputs = { tensors: { A: matrix(p, integers(p.rows.length, 2)), B }, params }
      return { name: `${p.name}, d = ${d}`, inputs, exact: kernel !== 'spmm_mean' }
    })
  }),
  ...(schedule === 'nm' || schedule === 'fixed_length'
    ? []
    : [
        {
          name: 'cora',
          large: true,
          inputs: { tensors: { A: cora, B: integers(2708 * 20, 3) } },
          exact: kernel !== 'spmm_mean',
        },
      ]),
]

kernelSuite({
  file: 'kernels/spmm.spt',
  cases: productCases,
})
kernelSuite({ file: 'kernels/spmm-reducers.spt', cases: productCases })

/** Rows in several rounds, the last of them short; more blocks of threads than rows. */
test.each(sample([1, 2, 5, 40], 2))(
  'spmm by a persistent grid of %i blocks agrees on cpu and webgpu',
  async (grid) => {
    const kernel = (await load('kernels/spmm.spt')).kernel('spmm').schedule('persistent', grid, 2, 4, 4, 2)
    for (const kind of ['cpu', 'webgpu'] as const) {
      const device = await devices[kind]()
      const compiled = await kernel.build(device)
      for (const p of patterns()) {
        const tensors = { A: matrix(p, integers(p.rows.length, 2)), B: integers(p.n * 20, 3) }
        const prepared = await compiled.bind({ ...tensors, d: 20, n: p.n })
        const v = await prepared.verify()
        expect([p.name, v.problems, v.maxAbsoluteError]).toEqual([p.name, [], 0])
        prepared.free()
      }
      compiled.release()
      await device.dispose()
    }
  },
)

/** As many groups as divide the row, and others; the last block of threads has fewer rows. */
test.each(sample([1, 3, 8, 12], 2))('spmm of rows of length %i agrees on cpu and webgpu', async (w) => {
  const [m, n, d] = [7, 31, 12]
  const rows = Array.from({ length: m * w }, (_, e) => Math.floor(e / w))
  const cols = rows.map((i, e) => (i * 5 + (e % w) * 2) % n)
  const of = { name: `${w} a row`, m, n, rows: Int32Array.from(rows), cols: Int32Array.from(cols) }
  const spmm = (await load('kernels/spmm.spt')).kernel('spmm')
  const tensors = { A: matrix(of, integers(rows.length, 2)), B: integers(n * d, 3) }
  const equal = { tensors, params: { m, n, d } }
  useCostModel('cuda', null)
  expect((await spmm.choose('cuda', ...flatInputs(equal))).selection.schedule).toBe('fixed_length')
  useCostModel('cuda', undefined)
  for (const kind of ['cpu', 'webgpu'] as const) {
    const device = await devices[kind]()
    const compiled = await spmm.schedule('fixed_length', w, 4, 2, 4, 2).build(device)
    const prepared = await compiled.bind(...flatInputs(equal))
    const v = await prepared.verify()
    expect([v.problems, v.maxAbsoluteError]).toEqual([[], 0])
    prepared.free()
    compiled.release()
    await device.dispose()
  }
})

kernelSuite({
  file: 'kernels/sddmm.spt',
  alsoWith: [
    ['sddmm', 'rows_by_length', 128],
    ['sddmm', 'rows', 512, 8, 2, 32],
    ['sddmm', 'wide', 8, 2, 32, 4, 4, 128],
    ['sddmm', 'edges', 30, 16, 1, 8, 2],
  ],
  cases: (kernel, schedule) => [
    ...patterns().map((p, k): KernelCase => {
      const d = ['edges', 'row_blocks', 'row_pieces'].includes(schedule ?? '')
        ? 32
        : [5, 33, 0, 16, 30, 44, 8][k % 7]!
      const where = kernel === 'sddmm' ? { A: matrix(p, integers(p.rows.length, 2)) } : { j: matrix(p, null) }
      return exact(
        { ...p, name: `${p.name}, d = ${d}` },
        { tensors: { ...where, X: integers(p.m * d, 3), Y: integers(p.n * d, 4) }, params: { d } },
      )
    }),
    {
      name: 'cora',
      large: true,
      inputs: {
        tensors: {
          [kernel === 'sddmm' ? 'A' : 'j']: cora,
          X: integers(2708 * 20, 3),
          Y: integers(2708 * 20, 4),
        },
      },
      exact: true,
    },
  ],
})

kernelSuite({
  file: 'kernels/gemm.spt',
  cases: () =>
    [
      [1, 1, 1],
      [33, 70, 17],
      [64, 32, 48],
      [128, 256, 24],
      [5, 100, 0],
      [0, 3, 4],
      [3, 0, 4],
    ].flatMap(([m, n, k]): KernelCase[] =>
      [integers, normals].map((values) => ({
        name: `${m} × ${n} × ${k}`,
        inputs: {
          tensors: { A: values(m! * k!, 1), B: values(k! * n!, 2) },
          params: { m: m!, n: n!, k: k!, alpha: -2 },
        },
        exact: values === integers,
      })),
    ),
})
