/** Transposition: whole tiles, cut ones, none. */

import { toF16 } from '../../src/ir/values/half.ts'
import { dense } from '../../src/node.ts'
import { integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

kernelSuite({
  file: 'kernels/transpose.spt',
  cases: () =>
    [
      [0, 5],
      [5, 0],
      [1, 1],
      [7, 33],
      [64, 64],
      [65, 63],
      [128, 192],
      [192, 64],
    ].map(
      ([m, n]): KernelCase => ({
        name: `${m} × ${n}`,
        inputs: { tensors: { X: dense([m!, n!], Uint16Array.from(integers(m! * n!, 3), toF16), 'f16') } },
        exact: true,
      }),
    ),
})
