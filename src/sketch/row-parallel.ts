/** Several results per row, one after the other: a thread, a group of neighbouring threads, or a block for each row. */
import type { Arrangement, Decisions, Plan } from './draft.ts'
import type { BlockShape, NestShape, RuleContext, Strand, StrandLoop } from './strands.ts'
import { largestUpTo, ownLoops, valuesUpTo } from './strands.ts'

/** The loop over rows that all strands share; `undefined` if they share more, or other loops. */
export function rowLoopOf({ strands }: NestShape): StrandLoop | undefined {
  const [row] = strands[0]!.loops
  const isRowLoop = row && row.role === 'rows' && !row.reduce
  return isRowLoop && strands.every((s) => s.shared === 1) ? row : undefined
}

/** True if a strand has a contiguous loop that vectors can cover. */
export const hasVectors = (strands: readonly Strand[]): boolean =>
  strands.some((s) => contiguousLoop(s) !== undefined)

/** Distributes rows over threads; all other loops stay in the thread. */
export function planRowPerThread(
  { prefix: called, strands }: NestShape,
  row: StrandLoop,
  context: RuleContext,
): Plan {
  const threads = context.decisions.choose(
    `${called}.threads`,
    valuesUpTo([32, 64, 128, 256], context.threads),
    64,
  )
  return (draft) => {
    const [blocks, thread] = draft.split(row.var, threads)
    draft.bind([
      [blocks, 'block.x'],
      [thread, 'thread.x'],
    ])
    return {
      completeAt: thread,
      finish(late) {
        for (const s of strands) {
          late.cacheInRegisters(s.buffers, thread)
          const spatial = ownLoops(s).findLast((l) => !l.reduce)
          if (spatial && s.loops.at(-1) !== spatial) late.cacheInRegisters(s.buffers, spatial.var)
        }
      },
    }
  }
}

/** Distributes a row's loops over neighbouring threads; with `usesBlock`, a block shares one row. */
export function planRowPerGroup(
  { strands }: NestShape,
  row: StrandLoop,
  context: RuleContext,
  { name: shape }: BlockShape,
  usesBlock: boolean,
): Plan {
  const d = context.decisions
  // A row with contiguous loops is work for a block; otherwise a block has several short rows.
  const isWide = hasVectors(strands)
  const rows = d.choose(`${shape}.rows`, [1, 2, 4, 8, 16, 32], isWide ? 1 : 8)
  const widths = valuesUpTo([4, 8, 16, 32, 64, 128, 256], context.threads / rows)
  const lanes = d.choose(`${shape}.lanes`, widths, largestUpTo(widths, isWide ? 64 : 16))
  const strandPlans = strands.map((s) => planStrand(s, lanes, usesBlock ? rows : 1, d))
  return (draft) => {
    const [blocks, group] = draft.splitUnlessOne(row.var, usesBlock ? 1 : rows)
    draft.bind([
      [blocks, 'block.x'],
      [group, 'thread.y'],
    ])
    const arranged = strandPlans.map((plan, k): readonly [Strand, Arrangement] => [strands[k]!, plan(draft)])
    return {
      finish(late) {
        for (const [s, a] of arranged) {
          late.cacheInRegisters(s.buffers, group ?? blocks)
          a.finish(late)
        }
      },
    }
  }
}

/** The innermost contiguous loop whose extent is independent of the row. */
const contiguousLoop = (strand: Strand): StrandLoop | undefined =>
  ownLoops(strand).findLast((l) => l.role === 'contiguous' && l.needs.size === 0)

/** Plans one strand of a row. @param groups - Number of groups of `lanes` threads that share a row */
function planStrand(strand: Strand, lanes: number, groups: number, d: Decisions): Plan {
  const loops = ownLoops(strand)
  const distributed = contiguousLoop(strand) ?? loops[0]
  if (!distributed) return () => ({ finish: () => undefined })
  const others = loops.filter((l) => l !== distributed)
  const reduces = distributed.reduce || others.some((l) => l.reduce)
  const factor = d.choose(`${strand.name}.ahead`, [1, 2, 4], 2)
  const predicated = reduces && factor > 1
  return (draft) => {
    const [turns, thread] = draft.split(distributed.var, groups * lanes)
    const [group, lane] = groups > 1 ? draft.split(thread, lanes) : [undefined, thread]
    draft.reorder([turns, group, lane, ...others.map((l) => l.var)])
    draft.bind([
      [group, 'thread.y'],
      [lane, 'thread.x'],
    ])
    return {
      finish(late) {
        if (!distributed.reduce && others.some((l) => l.reduce)) late.cacheInRegisters(strand.buffers, lane)
        const loop = others.findLast((l) => l.reduce)?.var ?? turns
        late.unroll(loop, factor, predicated)
      },
    }
  }
}
