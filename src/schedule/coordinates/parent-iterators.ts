/**
 * The parent of each iterator: the innermost enclosing iterator that opens the parent of its axis. Several iterators
 * may run over one axis, so a step that moves, replaces or fuses iterators must keep these pairs, in addition to the
 * order of axes.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { type Axis, isAttached, isFused, isGathered } from '../../ir/coordinates/axis.ts'
import type { Iter, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { walkStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { refuse } from './iterator-names.ts'

export interface Under {
  readonly iter: Iter
  /** The parent iterator; null for an iterator over a root. */
  readonly parent: Iter | null
}

/** Returns the iterators of an iteration and of the iterations inside it, outermost first. */
export function parentsIn(kernel: Kernel1, iteration: Iteration): readonly Under[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const out: Under[] = []
  walkStmts1(kernel.body, (s, { iterations }) => {
    const around = s.kind === 'iterate' ? [...iterations, s] : []
    if (!around.includes(iteration)) return
    const open = new Map<string, Iter>()
    for (const it of around)
      for (const iter of it.iters) {
        const axis = axes.get(iter.axis)!
        const wanted = entersBy(axis, axes)
        if (it === s) out.push({ iter, parent: wanted === null ? null : (open.get(wanted) ?? null) })
        for (const name of openedBy(axis)) open.set(name, iter)
      }
  })
  return out
}

/** Returns the stored axis (or list) that must be open for an iterator over the axis; null for a root. */
function entersBy(axis: Axis, axes: ReadonlyMap<string, Axis>): string | null {
  if (isFused(axis) || isGathered(axis) || axis.parent === null) return null
  const parent = axes.get(axis.parent)
  return isAttached(parent) ? parent.base : axis.parent
}

const openedBy = (axis: Axis): readonly string[] =>
  isFused(axis) ? axis.members : isAttached(axis) ? [axis.base] : [axis.name]

/**
 * Returns `next`. `stands` returns the replacement of an old iterator. @throws SptError `schedule/another-parent` if an
 * iterator of `before` has a different parent in `next`
 */
export function keepParents(
  kernel: Kernel1,
  before: Iteration,
  next: Kernel1,
  after: Iteration,
  span: Span | undefined,
  stands: (old: Iter) => Iter = (x) => x,
): Kernel1 {
  const now = parentsIn(next, after)
  for (const { iter, parent } of parentsIn(kernel, before)) {
    if (parent === null) continue
    const [child, above] = [stands(iter), stands(parent)]
    const found = now.filter((u) => u.iter === child).map((u) => u.parent)
    // Equal if both are fused, or if the child is entered by the iterator that its parent was compared with.
    const other = child === above ? undefined : found.find((p) => p !== above)
    if (other === undefined) continue
    refuse(kernel, span, {
      code: 'schedule/another-parent',
      message: other
        ? `${iter.name} is nested in ${parent.name}, and would be nested in ${other.name}, which runs over the same axis`
        : `${iter.name} is nested in ${parent.name}, which would be removed`,
      expected: `${above.name} the innermost iterator over the axis around ${iter.name}`,
      hint: other
        ? `keep ${other.name} after ${iter.name}, or move ${other.name} before ${above.name}`
        : `leave ${parent.name}, or do the same to ${iter.name}`,
    })
  }
  return next
}
