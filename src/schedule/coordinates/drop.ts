/**
 * `drop T`: removes iteration T if it is not needed (`analysis/sparsity/dead-iterations.ts`): no result depends
 * on its outputs, or it writes one value everywhere, which then replaces the reads of its outputs.
 */

import { withoutIteration } from '../../analysis/sparsity/dead-iterations.ts'
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { print1 } from '../../ir/print/print-stage1.ts'
import { coordPrimitive } from '../primitive.ts'
import * as arg from '../steps/arguments.ts'
import { iterationNamed } from './iterator-names.ts'

const takes = arg.takes(arg.nest('nest'))

function applyDrop(kernel: Kernel1, step: arg.StepOf<'drop', typeof takes>): Kernel1 {
  const left = withoutIteration(kernel, iterationNamed(kernel, step.nest))
  if ('kernel' in left) return left.kernel
  return failAs('schedule/drop', {
    message: left.reason,
    ...(left.span && { labels: [{ span: left.span, text: 'here' }] }),
    expected: 'an iteration that no result depends on, or an iteration that writes the same value everywhere',
    hint: 'drop the consumers first, or mask the iteration if only some elements are needed',
    notes: [print1(kernel)],
  })
}

export const drop = coordPrimitive({
  word: 'drop',
  call: "drop('first')",
  takes,
  given: (nest: string) => ({ nest }),
  apply: applyDrop,
})
