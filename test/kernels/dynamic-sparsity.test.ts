/** Products that find the zeros of their first operand in each run, as it comes in or rectified: scattered, in columns of panels, none, all. */
import { expect, test } from 'vitest'
import { dense, load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { halves, integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

const SIZES = [
  [0, 3, 5],
  [5, 0, 3],
  [3, 4, 0],
  [1, 1, 1],
  [31, 65, 17],
  [64, 64, 64],
  [70, 33, 130],
] as const

const PATTERNS: Readonly<Record<string, (i: number, p: number) => boolean>> = {
  none: () => false,
  all: () => true,
  scattered: (i, p) => (i * 31 + p * 17) % 7 === 0,
  'columns of panels': (i, p) => (Math.floor(i / 8) * 5 + p) % 3 === 0,
}

const byColumns = (kernel: string): boolean => kernel.endsWith('_f16') && !kernel.includes('rows')

/** Whole numbers as f32, or as f16, which holds them too. */
const matrix = (rows: number, columns: number, values: Float32Array, half: boolean) =>
  half ? halves([rows, columns], values) : dense([rows, columns], values)

kernelSuite({
  file: 'kernels/dynamic-sparsity.spt',
  alsoWith: [
    ['masked_matmul', 'cpu', 3, 5],
    ['masked_matmul', 'gpu', 8, 4, 8, 2, 4],
    ['masked_matmul_f16', 'wgmma', 64, 64, 2, 8, 8],
    ['masked_matmul_f16', 'narrow', 64, 128, 3, 8, 8],
    ['masked_matmul_f16', 'blocks', 16, 128, 2],
    ['masked_rows_matmul_f16', 'cpu', 3, 5],
    ['masked_rows_matmul_f16', 'gpu', 4, 8, 8, 4, 2],
    ['rectified_matmul', 'gpu', 8, 4, 8, 2, 4],
    ['rectified_matmul_f16', 'narrow', 64, 128, 3, 8, 8],
  ],
  cases: (kernel) =>
    SIZES.flatMap(([m, n, k]) =>
      Object.entries(PATTERNS).map(([name, held]): KernelCase => {
        const half = kernel.endsWith('_f16')
        // What is rectified has other values where it holds nothing.
        const rectified = kernel.startsWith('rectified')
        const B = matrix(k, n, integers(k * n, 3), half)
        const given = integers(m * k, 4)
        const values = rectified ? given.map(Math.abs) : given
        const nothing = (e: number): number => (rectified && e % 3 > 0 ? -(e % 3) : -0)
        // Half floats are multiplied with A as columns, where the kernel's name does not say rows.
        const A = byColumns(kernel)
          ? matrix(
              k,
              m,
              values.map((x, e) => (held(e % m, Math.floor(e / m)) ? x : nothing(e))),
              half,
            )
          : matrix(
              m,
              k,
              values.map((x, e) => (held(Math.floor(e / k), e % k) ? x : nothing(e))),
              half,
            )
        return { name: `${m} × ${n} × ${k}, ${name}`, inputs: { tensors: { A, B } }, exact: true }
      }),
    ),
})

/** Schedules for instructions that no device here has, of others in every run. */
test.each(
  sample(
    [
      ['masked_matmul_f16', 'narrow', [32, 64, 2, 8, 8], 40, 72, 70, 'scattered'],
      ['masked_matmul_f16', 'narrow', [16, 64, 3], 32, 64, 130, 'columns of panels'],
      ['masked_matmul_f16', 'blocks', [32, 64, 2], 64, 64, 128, 'scattered'],
      ['masked_matmul_f16', 'blocks', [16, 64, 3, 8], 32, 72, 192, 'columns of panels'],
      ['masked_matmul_f16', 'wgmma', [64, 64, 2, 8, 8], 72, 40, 65, 'scattered'],
      ['rectified_matmul_f16', 'narrow', [32, 64, 2, 8, 8], 40, 72, 70, 'columns of panels'],
      ['masked_matmul_f16', 'dense_wgmma', [64, 64, 2, 8, 8, 1], 72, 72, 70, 'scattered'],
      ['rectified_matmul_f16', 'dense_wgmma', [64, 128, 2], 128, 128, 64, 'columns of panels'],
      ['masked_rows_matmul_f16', 'm_axis', [64], 72, 64, 128, 'scattered'],
      ['masked_rows_matmul_f16', 'm_axis', [64], 40, 128, 64, 'columns of panels'],
      ['masked_rows_matmul_f16', 'm_axis_persistent', [64, 2, 2], 150, 64, 192, 'scattered'],
      ['masked_rows_matmul_f16', 'm_axis_persistent', [64, 3, 3], 72, 128, 64, 'columns of panels'],
      ['masked_rows_matmul_f16', 'dense_wgmma', [64, 64, 2, 8, 64], 72, 64, 128, 'scattered'],
      ['masked_matmul_f16', 'narrow', [32, 64, 2, 1, 1], 37, 71, 67, 'scattered'],
      ['masked_matmul_f16', 'wgmma', [64, 64, 2, 1, 1], 71, 37, 67, 'columns of panels'],
      ['masked_matmul_f16', 'dense_wgmma_unaligned', [64, 64, 2, 1, 1, 8], 71, 73, 67, 'scattered'],
      ['rectified_matmul_f16', 'dense_wgmma_unaligned', [64, 64, 2, 2, 1, 8], 70, 73, 67, 'scattered'],
      ['masked_rows_matmul_f16', 'dense_wgmma_unaligned', [64, 64, 2, 1, 2, 8], 71, 73, 66, 'scattered'],
      ['masked_rows_matmul_f16', 'm_axis_unaligned', [64, 1, 1], 71, 73, 131, 'columns of panels'],
    ] as const,
    2,
  ),
)('%s.%s(%j), interpreted after each step', async (kernel, schedule, args, m, n, k, pattern) => {
  const program = await load('kernels/dynamic-sparsity.spt')
  // Blocks of zeros as well: whole panels have none of some inputs.
  const held = PATTERNS[pattern]!
  const columns = byColumns(kernel)
  const place = (i: number, p: number): number => (columns ? p * m + i : i * k + p)
  const a = integers(m * k, 4)
  for (let i = 0; i < m; i++)
    for (let p = 0; p < k; p++) if (!held(i, p) || place(i, p) % 5 > 1) a[place(i, p)] = 0
  const b = integers(k * n, 3)
  const rectified = (x: number): number => (kernel === 'rectified_matmul_f16' ? Math.max(x, 0) : x)
  const C = Array.from({ length: m * n }, (_, e) => {
    let sum = 0
    for (let p = 0; p < k; p++) sum += rectified(a[place(Math.floor(e / n), p)]!) * b[p * n + (e % n)]!
    return sum
  })
  const tensors = { A: columns ? matrix(k, m, a, true) : matrix(m, k, a, true), B: matrix(k, n, b, true) }
  const got = interpreted(program.kernel(kernel).schedule(schedule, ...args), {
    tensors,
    params: { m, n, k },
  })
  expect(Array.from(got.get('C')!, (x) => Number(x) + 0)).toEqual(C)
})
