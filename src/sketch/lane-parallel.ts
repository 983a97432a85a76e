/** Several threads for each element of the result: they share a reduction, and combine partial sums at the end. */

import type { Expr } from '../ir/expressions/expr.ts'
import { someExpr, walkExpr } from '../ir/expressions/expr-tree.ts'
import { targetsOf } from '../ir/statements/accesses.ts'
import { exprsOf } from '../ir/statements/tree.ts'
import type { Plan } from './draft.ts'
import {
  type BlockShape,
  chooseUnroll,
  isRagged,
  largestUpTo,
  type Partition,
  type RuleContext,
  valuesUpTo,
  WARP,
} from './partition.ts'
import type { Strand, StrandLoop } from './strands.ts'
import { guessLanes, hasFewElements, longestLoop, requireMultiple, tripCount } from './trip-counts.ts'

export function planLanes(
  strand: Strand,
  partition: Partition,
  context: RuleContext,
  shape: BlockShape,
): Plan {
  const { sums, inner } = partition
  const last = sums.at(-1)!
  const isShort = sums.length > 1 && (tripCount(last, context) ?? WARP) < WARP
  // A reduction over a size, the same for all elements, reads contiguous operands.
  return last.needs.size === 0 && inner?.role !== 'contiguous' && !isShort
    ? planDotProduct(strand, partition, last, context, shape)
    : planSegments(strand, partition, isShort ? longestLoop(sums, context) : sums[0]!, context, shape)
}

/** Distributes a reduction into one element over the threads of a block. */
export function planBlock(strand: Strand, context: RuleContext, { name }: BlockShape): Plan {
  const threads = context.decisions.choose(
    `${name}.threads`,
    valuesUpTo([64, 128, 256], context.threads),
    256,
  )
  const unroll = chooseUnroll(strand.name, context.decisions)
  const sum = longestLoop(strand.loops, context)
  return (draft) => {
    const [turns, thread] = draft.split(sum.var, threads)
    const others = strand.loops.filter((l) => l !== sum).map((l) => l.var)
    draft.reorder([thread, turns, ...others])
    draft.bind([[thread, 'thread.x']])
    return { finish: (late) => late.unroll(others.at(-1) ?? turns, unroll.by, unroll.predicated) }
  }
}

const GROUPS = [2, 4, 8, 16, 32, 64, 128, 256]

/** Distributes the elements of a segment over groups of threads; each thread of a group has a part of the contiguous loop. */
function planSegments(
  strand: Strand,
  partition: Partition,
  sum: StrandLoop,
  context: RuleContext,
  { name: block, isMixed }: BlockShape,
): Plan {
  const { lead, outer, sums } = partition
  // The inner loop is distributed over blocks only if its extent does not depend on a segment.
  const inner = partition.inner && partition.inner.needs.size === 0 ? partition.inner : undefined
  const middle = partition.inner === inner ? partition.middle : [...partition.middle, partition.inner!]
  const d = context.decisions
  const { name } = strand
  const otherSums = sums.filter((l) => l !== sum)
  const ragged = isRagged(middle)
  const isSingleRow = isMixed || (ragged && !context.canDiverge)
  const rows = isSingleRow ? 1 : d.choose(`${block}.rows`, [1, 2, 4, 8, 16, 32], inner ? 4 : 8)
  const capacity = context.threads / rows / (inner ? 4 : 1)
  const counts = valuesUpTo(GROUPS, ragged ? Math.min(capacity, WARP) : capacity)
  // If other rules of the launch have rows or threads, the groups take the name of these.
  const decision = isMixed ? (inner ? 'rows' : 'threads') : 'groups'
  const groups = d.choose(
    `${block}.${decision}`,
    counts,
    largestUpTo(counts, inner && !hasFewElements(strand, context) ? 4 : 16),
  )
  const widths = valuesUpTo([4, 8, 16, 32], context.threads / rows / groups)
  const lanes = inner ? d.choose(`${block}.lanes`, widths, guessLanes(widths, inner, context, 8)) : 1
  const vectorLength = inner ? d.choose(`${name}.each`, [1, 2, 4], 4) : 1
  // Neighbours exchange registers, others combine through shared memory.
  const orders = isMixed ? ['lanes'] : ['groups', 'lanes']
  const order = inner && !ragged ? d.choose(`${block}.neighbours`, orders) : 'groups'
  const unroll = chooseUnroll(name, d)
  return (draft) => {
    if (inner) requireMultiple(draft, inner, vectorLength, context)
    const row = draft.splitUnlessOne(outer.var, rows)
    const strip = inner ? draft.split(inner.var, lanes * vectorLength) : undefined
    const [lane, vector] = strip ? draft.splitUnlessOne(strip[1], vectorLength) : []
    const [turns, group] = draft.split(sum.var, groups)
    const innermost = sums.at(-1) === sum ? turns : sums.at(-1)!.var
    const [outerLoops, innerLoops] = [middle, otherSums].map((loops) => loops.map((l) => l.var))
    const around = [lead?.var, row[0], strip?.[0], row[1], ...outerLoops!]
    draft.reorder([...around, group, lane, turns, ...innerLoops!, vector])
    draft.bind([
      [lead?.var, 'block.z'],
      [row[0], 'block.x'],
      [strip?.[0], 'block.y'],
      [row[1], inner ? 'thread.z' : 'thread.y'],
      [group, order === 'groups' ? 'thread.x' : 'thread.y'],
      [lane, order === 'groups' ? 'thread.y' : 'thread.x'],
    ])
    return {
      finish(late) {
        if (vector !== undefined) late.unroll(vector, 0)
        late.unroll(innermost, unroll.by, unroll.predicated)
      },
    }
  }
}

/** True if each thread locates its element by a binary search: a dozen dependent reads. */
const isSearched = ({ writes }: Strand): boolean =>
  writes.some((w) => exprsOf(w).some((e) => someExpr(e, (x) => x.kind === 'search')))

/** Distributes a dot product over a few threads, each with vectors and several products in flight. */
function planDotProduct(
  strand: Strand,
  partition: Partition,
  sum: StrandLoop,
  context: RuleContext,
  { name: block }: BlockShape,
): Plan {
  const { lead, outer, middle, sums, inner } = partition
  const d = context.decisions
  const { name } = strand
  const lanes = d.choose(`${block}.lanes`, [2, 4, 8, 16, 32], isSearched(strand) ? 4 : 8)
  const counts = valuesUpTo([1, 2, 4, 8, 16, 32], context.threads / lanes)
  const elements = [...middle, ...(inner ? [inner] : [])]
  const ragged = isRagged(elements)
  const isSingleRow = ragged && !context.canDiverge
  const rows = isSingleRow ? 1 : d.choose(`${block}.rows`, counts, largestUpTo(counts, 16))
  const perThread = d.choose(`${name}.per`, [1, 2, 4])
  const vectorLength = d.choose(`${name}.each`, [1, 2, 4], 4)
  const spatial = elements.filter((l) => l.constant !== 1)
  const otherLoops = [...elements, ...sums].filter((l) => l !== sum && !spatial.includes(l))
  const size = sum.size === null ? undefined : context.sizes.get(sum.size)
  const isConstant =
    size !== undefined && size > 0 && d.choose(`${name}.${sum.size}`, ['constant', 'any']) === 'constant'
  return (draft) => {
    if (isConstant) draft.step({ kind: 'require', size: sum.size!, relation: 'equal', by: size })
    else requireMultiple(draft, sum, vectorLength, context)
    // Elements of a segment share one operand; otherwise a thread takes neighbouring iterations of the outer loop.
    const segment = ragged ? spatial.at(-1)?.var : undefined
    const [blocks, chunk] = draft.split(outer.var, segment === undefined ? rows * perThread : rows)
    const [row, turn] = draft.splitUnlessOne(chunk, segment === undefined ? perThread : 1)
    const [turns, strip] = draft.split(sum.var, lanes * vectorLength)
    const [lane, vector] = draft.splitUnlessOne(strip, vectorLength)
    const [outerLoops, innerLoops] = [spatial, otherLoops].map((loops) => loops.map((l) => l.var))
    draft.reorder([lead?.var, blocks, row, ...outerLoops!, turn, lane, ...innerLoops!, turns, vector])
    draft.bind([
      [lead?.var, 'block.z'],
      [blocks, 'block.x'],
      [row, 'thread.y'],
      [lane, 'thread.x'],
    ])
    return {
      finish(late) {
        if (vector !== undefined) late.unroll(vector, 0)
        if (isConstant && size / (lanes * vectorLength) <= 16) late.unroll(turns, 0)
        if (turn !== undefined) late.unroll(turn, 0)
        if (segment !== undefined) late.unroll(segment, perThread)
      },
    }
  }
}

// Merge-path partition: equal chunks of sorted elements for all threads, whatever the lengths of segments. A thread sums consecutive elements of one segment, and updates the result where the next segment begins.

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
      ...(carryOut === 'in order' && { into: draft.freshBuffer(`${buffer}_carried`) }),
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
