/** Products that find the zeros of their first operand in each run: scattered, in columns of panels, none, all. */
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

kernelSuite({
  file: 'kernels/dynamic-sparsity.spt',
  alsoWith: [
    ['masked_matmul', 'cpu', 3, 5],
    ['masked_matmul', 'gpu', 8, 4, 8, 2, 4],
  ],
  cases: () =>
    SIZES.flatMap(([m, n, k]) =>
      Object.entries(PATTERNS).map(([name, held]): KernelCase => {
        const A = Float32Array.from(integers(m * k, 4), (x, e) =>
          held(Math.floor(e / k), e % k) ? x || 1 : -0,
        )
        return {
          name: `${m} × ${n} × ${k}, ${name}`,
          inputs: {
            tensors: { A: dense([m, k], A), B: dense([k, n], Float32Array.from(integers(k * n, 3))) },
          },
          exact: true,
        }
      }),
    ),
})
