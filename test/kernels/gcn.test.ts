/** A sum over rows with what is made of it, in one kernel: exact on integers. */
import { integers, type KernelCase, kernelSuite, matrix, patterns } from '../support/kernels.ts'

kernelSuite({
  file: 'kernels/gcn.spt',
  cases: () =>
    patterns().map((p, k): KernelCase => {
      const d = [1, 33, 40, 8][k % 4]!
      const tensors = { A: matrix(p, integers(p.rows.length, 2)), X: integers(p.n * d, 3), b: integers(d, 4) }
      return { name: `${p.name}, d = ${d}`, inputs: { tensors, params: { d, n: p.n } }, exact: true }
    }),
  alsoWith: [
    ['gcn', 'ahead', 64, 8, 8],
    ['gcn', 'ahead_merged', 16, 4, 16],
  ],
})
