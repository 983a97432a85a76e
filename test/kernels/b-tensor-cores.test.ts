/** Products on tensor cores: what can be run here is; the texts of the others compile. */
import { integers, type KernelCase, kernelSuite, matrix, patterns } from '../support/kernels.ts'

kernelSuite({
  file: 'kernels/gemm-f16.spt',
  onlyCuda: ['mma', 'wgmma128', 'wgmma256'],
  cases: () =>
    [
      [1, 1, 1],
      [33, 20, 17],
      [5, 40, 0],
    ].map(
      ([m, n, k]): KernelCase => ({
        name: `${m} × ${n} × ${k}`,
        inputs: {
          tensors: { A: integers(m! * k!, 1), B: integers(k! * n!, 2) },
          params: { m: m!, n: n!, k: k! },
        },
        exact: true,
      }),
    ),
})

kernelSuite({
  file: 'kernels/block-sparse-f16.spt',
  onlyCuda: ['mma16', 'mma32', 'mma64', 'wgmma64', 'wgmma128', 'wgmma256'],
  cases: () =>
    patterns().map(
      (p): KernelCase => ({
        name: p.name,
        inputs: {
          tensors: { A: matrix(p, integers(p.rows.length, 1)), B: integers(p.n * 18, 2) },
          params: { n: p.n, d: 18 },
        },
        exact: true,
      }),
    ),
})

kernelSuite({
  file: 'kernels/gemm-tf32.spt',
  onlyCuda: ['mma'],
  cases: () => [
    {
      name: '33 × 20 × 17',
      inputs: {
        tensors: { A: integers(33 * 17, 1), B: integers(17 * 20, 2) },
        params: { m: 33, n: 20, k: 17 },
      },
      exact: true,
    },
  ],
})
