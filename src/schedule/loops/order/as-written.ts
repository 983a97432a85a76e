/** The schedule that leaves loops unchanged (`as_written`). */

import { primitive } from '../../primitive.ts'

/**
 * `as_written`: leaves the loops unchanged. Without a step on loops, `build` uses a default schedule; this step
 * prevents that.
 */
export const asWritten = primitive({
  word: 'as_written',
  call: 'asWritten()',
  takes: [],
  given: () => ({}),
  apply: (cx) => ({ body: cx.kernel.body }),
})
