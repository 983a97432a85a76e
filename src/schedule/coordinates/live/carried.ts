/**
 * Iterations over the structure of a `live` format that do not read its tensor. Where the tensor has its fill value,
 * such an iteration changes nothing that is needed (`mask.ts`). Running there makes no difference, so all listed
 * positions are visited without a check.
 */

import { isDenseRoot, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { type Body1, iterationsOf, rewriteStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { refuseAt } from '../../refusals.ts'
import type { StepSpan } from '../as/tensor-split.ts'
import { replaceIteration } from '../iterator-names.ts'
import { underMask } from '../mask.ts'

/**
 * Returns the kernel with the complete body of iteration `nest` under the condition that the tensor differs from its
 * fill value. Its iterators move to the tensor's axes `chosen`, which have the same extents.
 * @throws SptError `schedule/live-tensor`, and the errors of `mask`
 */
export function carriedTo(
  kernel: Kernel1,
  nest: string,
  { tensor, chosen }: { readonly tensor: Buffer1; readonly chosen: readonly StoredAxis[] },
  at: StepSpan,
): Kernel1 {
  const under = underMask(kernel, { nest, buffer: tensor.name, ...at })
  const it = iterationsOf(under.body).find((x) => x.name === nest)!
  const [condition] = it.body
  const held = condition?.kind === 'if' && condition.cond.kind === 'binary' ? condition.cond.a : undefined
  const index = held?.kind === 'load' ? held.index : []
  const start = tensor.axes.indexOf(chosen[0]!.name)
  const over = new Map(
    chosen.flatMap((a, k) => [...freeVars(index[start + k]!)].map((name) => [name, a.name])),
  )
  const isRoot = (name: string): boolean => under.axes.some((a) => a.name === name && isDenseRoot(a))
  const own = it.iters.filter((x) => over.has(x.name) && isRoot(x.axis))
  if (own.length < chosen.length)
    refuseAt('schedule/live-tensor', at, {
      message: `${nest} does not iterate over each dimension of ${tensor.name} that the format covers`,
      ...(it.span ? { labels: [{ span: it.span, text: 'here' }] } : {}),
      expected: 'an iteration that accesses a tensor by iterators of the same extents',
      hint: `leave out ${nest}, or mask ${nest} by ${tensor.name}`,
    })
  const iters = it.iters.map((x) => (own.includes(x) ? { ...x, axis: over.get(x.name)! } : x))
  return { ...under, body: replaceIteration(under.body, it, { ...it, iters }) }
}

/** Removes the condition from each of these iterations whose body is a single `if`. */
export const withoutConditions = (body: Body1, iterations: ReadonlySet<string>): Body1 =>
  rewriteStmts1(body, (s) => {
    const under = s.kind === 'iterate' && iterations.has(s.name) ? s.body[0] : undefined
    return s.kind === 'iterate' && under?.kind === 'if' ? { ...s, body: under.then } : undefined
  })
