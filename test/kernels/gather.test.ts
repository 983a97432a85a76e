/** Kernels that only gather: two hops, pooling with other reducers, narrow types. */
import { dense } from '../../src/node.ts'
import { integers, type KernelCase, kernelSuite, matrix, normals, patterns } from '../support/kernels.ts'
import { below } from './data.ts'

const transposed = (p: ReturnType<typeof patterns>[number]) => ({
  ...p,
  m: p.n,
  n: p.m,
  rows: p.cols,
  cols: p.rows,
})

kernelSuite({
  file: 'kernels/hypergraph.spt',
  cases: () =>
    patterns().map((p, k): KernelCase => {
      const d = [1, 33, 0, 7][k % 4]!
      const n = p.rows.length
      return {
        name: `${p.name}, d = ${d}`,
        inputs: {
          tensors: {
            H: matrix(p, integers(n, 2)),
            G: matrix(transposed(p), integers(n, 3)),
            X: integers(p.m * d, 4),
          },
          params: { d },
        },
        exact: true,
      }
    }),
})

kernelSuite({
  file: 'kernels/pooling.spt',
  cases: (kernel) =>
    patterns().map((p, k): KernelCase => {
      const d = [1, 33, 0, 7][k % 4]!
      const size = p.n * d
      const X =
        kernel === 'pool_max'
          ? dense(
              [p.n, d],
              below(2000, size, 3).map((x) => x - 1000),
            )
          : kernel === 'pool_min'
            ? dense([p.n, d], Uint8Array.from(below(256, size, 3)))
            : // Mostly what the reducer waits for, so that neither answer is the rule.
              dense(
                [p.n, d],
                Uint8Array.from(below(6, size, 3), (x) => (kernel === 'pool_any' ? +(x === 0) : +(x !== 0))),
                'bool',
              )
      return { name: `${p.name}, d = ${d}`, inputs: { tensors: { j: matrix(p, null), X } }, exact: true }
    }),
})

kernelSuite({
  file: 'kernels/narrow-types.spt',
  cases: (kernel) =>
    patterns().flatMap((p, k): KernelCase[] => {
      const d = [1, 33, 0, 7][k % 4]!
      const n = p.rows.length
      if (kernel === 'spmm_half')
        return [integers, normals].map((values) => ({
          name: `${p.name}, d = ${d}, ${values.name}`,
          inputs: { tensors: { A: matrix(p, values(n, 2)), B: values(p.n * d, 3) }, params: { d, n: p.n } },
          exact: values === integers,
        }))
      const A = {
        ...matrix(p, null),
        values: Int8Array.from(below(256, n, 2), (x) => x - 128),
        dtype: 'i8' as const,
      }
      return [
        {
          name: `${p.name}, d = ${d}`,
          inputs: {
            tensors: { A, B: dense([p.n, d], Uint8Array.from(below(256, p.n * d, 3))) },
            params: { d, scale: 0.25 },
          },
          exact: true,
        },
      ]
    }),
})
