/** The schedule that leaves loops unchanged (`as_written`). */

import { rowSums } from '../../examples/samples.ts'
import { primitive } from '../../primitive.ts'

/**
 * `as_written`: leaves the loops unchanged. Without a step on loops, `compile` uses a default schedule; this step
 * prevents that.
 */
export const asWritten = primitive({
  word: 'as_written',
  call: 'asWritten()',
  takes: [],
  given: () => ({}),
  apply: (cx) => ({ body: cx.kernel.body }),
  example: {
    before: rowSums,
    step: { kind: 'as_written' },
    after: `\
for i in 0..m
  for j in 0..j_indptr[i + 1] - j_indptr[i]  reduce
    y[i] += A[j_indptr[i] + j]  init`,
  },
})
