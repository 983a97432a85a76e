/** Products that find the zeros of their first operand in each run: scattered, in columns of panels, none, all. */
import { toF16 } from '../../src/ir/half.ts'
import { dense } from '../../src/node.ts'
import { integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

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

/** Whole numbers as f32, or as f16, which holds them too. */
const matrix = (rows: number, columns: number, values: Float32Array, half: boolean) =>
  half ? dense([rows, columns], Uint16Array.from(values, toF16), 'f16') : dense([rows, columns], values)

kernelSuite({
  file: 'kernels/dynamic-sparsity.spt',
  onlyCuda: ['wgmma'],
  alsoWith: [
    ['masked_matmul', 'cpu', 3, 5],
    ['masked_matmul', 'gpu', 8, 4, 8, 2, 4],
    ['masked_matmul_f16', 'wgmma', 64, 64, 2, 8, 8],
  ],
  cases: (kernel) =>
    SIZES.flatMap(([m, n, k]) =>
      Object.entries(PATTERNS).map(([name, held]): KernelCase => {
        const half = kernel === 'masked_matmul_f16'
        const B = matrix(k, n, integers(k * n, 3), half)
        const values = integers(m * k, 4)
        // The second kernel has A as columns.
        const A = half
          ? matrix(
              k,
              m,
              values.map((x, e) => (held(e % m, Math.floor(e / m)) ? x : -0)),
              half,
            )
          : matrix(
              m,
              k,
              values.map((x, e) => (held(Math.floor(e / k), e % k) ? x : -0)),
              half,
            )
        return { name: `${m} × ${n} × ${k}, ${name}`, inputs: { tensors: { A, B } }, exact: true }
      }),
    ),
})
