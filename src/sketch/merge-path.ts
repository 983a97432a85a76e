/**
 * Merge-path partition: equal chunks of sorted elements for all threads, whatever the lengths of segments. A thread
 * sums consecutive elements of one segment, and updates the result where the next segment begins.
 */

import type { Expr } from '../ir/expressions/expr.ts'
import { walkExpr } from '../ir/expressions/expr-tree.ts'
import { targetsOf } from '../ir/statements/accesses.ts'
import type { Plan } from './draft.ts'
import type { Strand } from './strands.ts'
import { guessLanes, type Partition, type RuleContext, requireMultiple, valuesUpTo } from './threads.ts'

export function planChunks(strand: Strand, { outer, inner }: Partition, context: RuleContext): Plan {
  const d = context.decisions
  const { name } = strand
  const [buffer] = strand.buffers
  const chunkSize = d.choose(`${name}.share`, [8, 16, 32, 64], inner ? 32 : 8)
  const counts = inner ? [4, 8, 16, 32, 64] : [64, 128, 256]
  const chunks = d.choose(`${name}.shares`, counts, inner ? 16 : 128)
  const widths = valuesUpTo([4, 8, 16, 32], context.threads / chunks)
  const lanes = inner ? d.choose(`${name}.lanes`, widths, guessLanes(widths, inner, context, 16)) : 1
  const vectorLength = inner ? d.choose(`${name}.each`, [1, 2, 4], 4) : 1
  const factor = d.choose(`${name}.by`, [1, 2, 4], 4)
  // Fused loops contain the segment boundaries; in a list, neighbouring threads may have elements of the same segment.
  const carryOut = hasSegments(strand)
    ? d.form(`${name}.ends`, ['atomic', 'atomic in blocks', 'in order'])
    : 'atomic'
  return (draft) => {
    if (inner) requireMultiple(draft, inner, vectorLength, context)
    const [chunk, element] = draft.split(outer.var, chunkSize)
    const [blocks, group] = draft.split(chunk, chunks)
    const strip = inner ? draft.split(inner.var, lanes * vectorLength) : undefined
    const [lane, vector] = strip ? draft.splitUnlessOne(strip[1], vectorLength) : []
    draft.reorder([blocks, strip?.[0], group, lane, element, vector])
    draft.bind([
      [blocks, 'block.x'],
      [strip?.[0], 'block.y'],
      [group, strip ? 'thread.y' : 'thread.x'],
      [lane, 'thread.x'],
    ])
    draft.step({
      kind: 'accumulate',
      buffer: buffer!,
      loop: { var: element },
      ...(factor === 1 ? {} : { by: factor }),
      ...(carryOut === 'atomic' ? {} : { within: { var: group } }),
      ...(carryOut === 'in order' ? { into: draft.freshBuffer(`${buffer}_carried`) } : {}),
    })
    return { finish: (late) => (vector === undefined ? undefined : late.unroll(vector, 0)) }
  }
}

/** True if the strand only reduces sorted elements into a result, by segment. */
export const isChunkable = (strand: Strand, { outer, middle, sums, lead, inner }: Partition): boolean =>
  outer.role === 'scatter' &&
  outer.reduce &&
  sums.length === 0 &&
  middle.length === 0 &&
  lead === undefined &&
  (inner === undefined || inner.role === 'contiguous') &&
  strand.buffers.length === 1

/** True if each target is the element of the segment that contains a position. */
const hasSegments = ({ writes }: Strand): boolean =>
  writes.every((w) => targetsOf(w).some((t) => t.index.some(isSearch)))

/** True for an index that is one binary search, without loads. */
function isSearch(index: Expr): boolean {
  let searches = 0
  let loads = 0
  walkExpr(index, (e) => {
    if (e.kind === 'search') searches++
    if (e.kind === 'load') loads++
  })
  return searches === 1 && loads === 0
}
