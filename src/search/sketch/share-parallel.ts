/**
 * Equal shares of sorted elements for all threads, whatever the segments' lengths (merge path's partition): a thread sums up
 * what neighbours have for one element of the result, and updates it where the next element begins.
 */
import { targetsOf } from '../../ir/accesses.ts'
import type { Expr } from '../../ir/expr.ts'
import { walkExpr } from '../../ir/expr-tree.ts'
import type { Plan } from './plan.ts'
import type { Strand } from './strands.ts'
import { type Around, type Dealt, lanesGuess, requireOf, within } from './threads.ts'

export function shareParallel(strand: Strand, { outer, inner }: Dealt, around: Around): Plan {
  const d = around.decisions
  const { name } = strand
  const [buffer] = strand.buffers
  const share = d.choose(`${name}.share`, [8, 16, 32, 64], inner ? 32 : 8)
  const counts = inner ? [4, 8, 16, 32, 64] : [64, 128, 256]
  const shares = d.choose(`${name}.shares`, counts, inner ? 16 : 128)
  const widths = within([4, 8, 16, 32], around.threads / shares)
  const lanes = inner ? d.choose(`${name}.lanes`, widths, lanesGuess(widths, inner, around, 16)) : 1
  const each = inner ? d.choose(`${name}.each`, [1, 2, 4], 4) : 1
  const by = d.choose(`${name}.by`, [1, 2, 4], 4)
  // What is fused knows where segments begin; of a list, neighbours may be of one element.
  const ends = inSegments(strand)
    ? d.form(`${name}.ends`, ['atomic', 'atomic in blocks', 'in order'])
    : 'atomic'
  return (draft) => {
    if (inner) requireOf(draft, inner, each, around)
    const [all, one] = draft.split(outer.var, share)
    const [blocks, group] = draft.split(all, shares)
    const strip = inner ? draft.split(inner.var, lanes * each) : undefined
    const [lane, vector] = strip && each > 1 ? draft.split(strip[1], each) : [strip?.[1], undefined]
    draft.reorder([blocks, strip?.[0], group, lane, one, vector])
    draft.bind([
      [blocks, 'block.x'],
      ...(strip ? [[strip[0], 'block.y'] as const] : []),
      [group, strip ? 'thread.y' : 'thread.x'],
      ...(lane === undefined ? [] : [[lane, 'thread.x'] as const]),
    ])
    draft.step({
      kind: 'accumulate',
      buffer: buffer!,
      loop: { var: one },
      ...(by === 1 ? {} : { by }),
      ...(ends === 'atomic' ? {} : { within: { var: group } }),
      ...(ends === 'in order' ? { into: draft.freshBuffer(`${buffer}_carried`) } : {}),
    })
    return { whole: undefined, finish: (late) => (vector === undefined ? undefined : late.unroll(vector, 0)) }
  }
}

/** True if the strand only reduces sorted elements into a result whose element changes along the way. */
export const isShared = (strand: Strand, { outer, middle, sums, lead, inner }: Dealt): boolean =>
  outer.role === 'scatter' &&
  outer.reduce &&
  sums.length === 0 &&
  middle.length === 0 &&
  lead === undefined &&
  (inner === undefined || inner.role === 'contiguous') &&
  strand.buffers.length === 1

/** True if the target element is that of the segment that contains a position. */
const inSegments = ({ writes }: Strand): boolean =>
  writes.every((w) => targetsOf(w).some((t) => t.index.some(isSearch)))

/** A search alone, and nothing else from memory. */
function isSearch(index: Expr): boolean {
  let searches = 0
  let loads = 0
  walkExpr(index, (e) => {
    if (e.kind === 'search') searches++
    if (e.kind === 'load') loads++
  })
  return searches === 1 && loads === 0
}
