/** Loops as they are, where nothing else is to be chosen for them (`as_written`). */

import { primitive } from '../primitive.ts'
import { rowSums } from '../samples.ts'

/**
 * `as_written`: the loops stay as they are. Without a step on loops `compile` looks for a schedule by itself; this is one,
 * which changes nothing.
 */
export const asWritten = primitive({
  word: 'as_written',
  call: 'as_written()',
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
