/**
 * Kinds of the iterators that a format adds. If different iterations may write the same element (a coordinate is
 * stored several times, rows are split in pieces, another axis enters the rows of blocks), a spatial iterator becomes
 * a reduction. If the kernel's semantics do not allow that, the format is rejected.
 */

import { accessesOf } from '../../../analysis/dependence/coordinate-accesses.ts'
import { determined, distinctIn } from '../../../analysis/dependence/coordinate-injectivity.ts'
import { checkKinds } from '../../../analysis/dependence/iterator-kinds.ts'
import { type Axis, repeatsCoordinates } from '../../../ir/coordinates/axis.ts'
import type { Iter, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { type Body1, rewriteStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import { refuseAt } from '../../refusals.ts'
import type { StepSpan } from './tensor-split.ts'

/**
 * Returns the kernel with corrected kinds of iterators over the format's axes `fresh`. @throws SptError
 * `schedule/format-repeats`
 */
export function withKinds(kernel: Kernel1, fresh: readonly Axis[], text: string, at: StepSpan): Kernel1 {
  const combining = combiningIters(kernel, new Set(fresh.map((a) => a.name)))
  const next = combining.size === 0 ? kernel : { ...kernel, body: demoted(kernel.body, combining) }
  const [problem] = checkKinds(next)
  if (!problem) return next
  const repeated = fresh.filter(repeatsCoordinates).map((a) => a.name)
  return refuseAt('schedule/format-repeats', at, {
    message:
      repeated.length > 0
        ? `${text} may hold a coordinate of ${repeated.join(', ')} several times: ${problem.message}`
        : `iterations of ${text} may write the same elements of ${kernel.name}: ${problem.message}`,
    expected: 'sums over the repeated coordinates without earlier consumers',
    hint: 'choose a format in which each coordinate occurs once, such as csr',
  })
}

/**
 * Returns the spatial iterators over new axes that may write the same element of a target in different iterations.
 */
function combiningIters(kernel: Kernel1, fresh: ReadonlySet<string>): ReadonlySet<Iter> {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const over = new Map(kernel.buffers.map((b) => [b.name, b.axes]))
  const distinct = distinctIn(kernel.buffers)
  const out = new Set<Iter>()
  for (const a of accessesOf(kernel.body, axes)) {
    if (a.mode === 'read') continue
    const by = determined(a, over.get(a.buffer) ?? [], axes, distinct)
    for (const { iter, coords } of a.around)
      if (iter.kind === 'S' && fresh.has(iter.axis) && coords.some((x) => !by.has(x.name))) out.add(iter)
  }
  return out
}

const demoted = (body: Body1, combining: ReadonlySet<Iter>): Body1 =>
  rewriteStmts1(body, (s) => {
    if (s.kind !== 'iterate') return undefined
    return { ...s, iters: s.iters.map((x) => (combining.has(x) ? { ...x, kind: 'R' as const } : x)) }
  })
