/**
 * `mask T by M`: iteration T runs only where the tensor M, its mask, differs from its fill value (−0.0 equals zero, NaN
 * differs). Results do not change if T's statements combine the identity elsewhere, or write elements that are not
 * needed there (`analysis/sparsity/maskable-iterations.ts`). One structure, built at run time or bound, then serves all
 * iterations under the mask.
 */

import { factsOf, maskOf, notComplete } from '../../analysis/sparsity/maskable-iterations.ts'
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { when1 } from '../../ir/coordinates/stage1-tree.ts'
import { differs, type Expr, load } from '../../ir/expressions/expr.ts'
import { print1 } from '../../ir/print/print-stage1.ts'
import { coordPrimitive } from '../primitive.ts'
import { among } from '../refusals.ts'
import * as arg from '../steps/arguments.ts'
import { iterationNamed, refuse, replaceIteration } from './iterator-names.ts'
import { factorsOf } from './legality/padding.ts'

const takes = arg.takes(arg.nest('nest'), 'by', arg.buffer('buffer'))

/**
 * Returns the kernel with the complete body of the iteration under the mask's condition, and where that reads the mask.
 * @throws SptError `schedule/mask`, `schedule/unknown-nest`, `schedule/unknown-buffer`
 */
export function underMask(
  kernel: Kernel1,
  step: Omit<arg.StepOf<'mask', typeof takes>, 'kind'>,
): { readonly kernel: Kernel1; readonly index: readonly Expr[] } {
  const it = iterationNamed(kernel, step.nest)
  const buffers = kernel.buffers.filter((b) => !b.table)
  const mask = buffers.find((b) => b.name === step.buffer)
  if (!mask) {
    const candidates = buffers.map((b) => b.name)
    return refuse(kernel, 'schedule/unknown-buffer', {
      message: `there is no buffer ${step.buffer}`,
      ...among(step.buffer, candidates),
    })
  }
  const found = notComplete(kernel, it, mask) ?? maskOf(kernel, it, factsOf(kernel, mask))
  const isBuiltAtRunTime = kernel.runtimeLists?.some((f) => f.tensor === mask.name)
  if (!('index' in found))
    return failAs('schedule/mask', {
      message: isBuiltAtRunTime
        ? `the consumers of ${mask.name} already iterate over the run-time format: ${found.reason}`
        : found.reason,
      ...(found.span && { labels: [{ span: found.span, text: 'here' }] }),
      expected: `an iteration whose results are not needed where ${mask.name} is ${mask.fill}`,
      hint: isBuiltAtRunTime ? `move the mask before the step that makes ${mask.name} live` : found.hint,
      notes: [print1(kernel)],
    })
  const held = differs(load(mask.name, found.index, mask.dtype), mask.fill)
  const by: Iteration = { ...it, body: [when1(held, it.body, [])] }
  const passedOver = {
    by: `mask ${step.nest} by ${mask.name}`,
    tensor: mask.name,
    factors: factorsOf(kernel, mask),
  }
  const masked: Kernel1 = {
    ...kernel,
    body: replaceIteration(kernel.body, it, by),
    skippedProducts: [...(kernel.skippedProducts ?? []), passedOver],
  }
  return { kernel: masked, index: found.index }
}

export const mask = coordPrimitive({
  word: 'mask',
  call: "mask('first', 'M')",
  takes,
  given: (nest: string, buffer: string) => ({ nest, buffer }),
  apply: (kernel, step) => underMask(kernel, step).kernel,
})
