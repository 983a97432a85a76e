/** Several results per row, one after the other: a thread, a group of neighbouring threads, or a block for each row. */
import type { Load } from '../ir/expressions/expr.ts'
import { mentions } from '../ir/expressions/expr-tree.ts'
import { targetsOf } from '../ir/statements/accesses.ts'
import type { Store } from '../ir/statements/loops.ts'
import type { Arrangement, Decisions, Plan } from './draft.ts'
import { type BlockShape, largestUpTo, type RuleContext, valuesUpTo } from './partition.ts'
import { type NestShape, ownLoops, type Strand, type StrandLoop } from './strands.ts'

/** The loops over rows that all strands share: the innermost, and at most two around it. */
export interface RowLoops {
  readonly row: StrandLoop
  readonly leads: readonly StrandLoop[]
  /** True if neighbouring rows are contiguous in all results of several dimensions. */
  readonly areContiguous: boolean
}

/** The loops over rows that all strands share; `undefined` if they share other loops. */
export function rowLoopsOf({ strands }: NestShape): RowLoops | undefined {
  const { shared, loops } = strands[0]!
  const leads = loops.slice(0, Math.max(0, shared - 1))
  const row = loops[shared - 1]
  const isSpatial = (l: StrandLoop): boolean => !l.reduce && l.needs.size === 0 && l.role !== 'reduction'
  const areRows = row && leads.length <= 2 && [...leads, row].every(isSpatial)
  if (!areRows || !strands.every((s) => s.shared === shared)) return undefined
  const targets = strands.flatMap((s) => s.writes.flatMap(targetsOf))
  const isAlongLast = ({ index }: Load | Store): boolean =>
    index.every((e, k) => mentions(e, row.var) === (k === index.length - 1))
  const areContiguous = targets.some((t) => t.index.length > 1) && targets.every(isAlongLast)
  return { row, leads, areContiguous }
}

/** Threads of a block for neighbouring rows, and for the elements of a row: contiguous accesses are on `thread.x`. */
const threadAxes = ({ areContiguous }: RowLoops) =>
  areContiguous ? (['thread.x', 'thread.y'] as const) : (['thread.y', 'thread.x'] as const)

const bindLeads = ({ leads }: RowLoops): readonly (readonly [string, 'block.y' | 'block.z'])[] =>
  leads.map(({ var: lead }, k) => [lead, k === 0 ? 'block.y' : 'block.z'])

/** True if a strand has a contiguous loop that vectors can cover. */
export const hasVectors = (strands: readonly Strand[]): boolean =>
  strands.some((s) => contiguousLoop(s) !== undefined)

/** Distributes rows over threads; all other loops stay in the thread. */
export function planRowPerThread(
  { prefix: called, strands }: NestShape,
  rows: RowLoops,
  context: RuleContext,
): Plan {
  const threads = context.decisions.choose(
    `${called}.threads`,
    valuesUpTo([32, 64, 128, 256], context.threads),
    64,
  )
  return (draft) => {
    const [blocks, thread] = draft.split(rows.row.var, threads)
    draft.bind([...bindLeads(rows), [blocks, 'block.x'], [thread, 'thread.x']])
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
  rowLoops: RowLoops,
  context: RuleContext,
  { name: shape }: BlockShape,
  usesBlock: boolean,
): Plan {
  const d = context.decisions
  // A row with contiguous loops is work for a block; otherwise a block has several short rows.
  const isWide = hasVectors(strands)
  const isColumn = rowLoops.areContiguous
  const rows = d.choose(`${shape}.rows`, [1, 2, 4, 8, 16, 32], isColumn ? 32 : isWide ? 1 : 8)
  const widths = valuesUpTo([4, 8, 16, 32, 64, 128, 256], context.threads / rows)
  const lanes = d.choose(`${shape}.lanes`, widths, largestUpTo(widths, isColumn ? 8 : isWide ? 64 : 16))
  const [rowAxis, laneAxis] = threadAxes(rowLoops)
  const strandPlans = strands.map((s) => planStrand(s, lanes, usesBlock ? rows : 1, laneAxis, d))
  return (draft) => {
    const [blocks, group] = draft.splitUnlessOne(rowLoops.row.var, usesBlock ? 1 : rows)
    draft.bind([...bindLeads(rowLoops), [blocks, 'block.x'], [group, rowAxis]])
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
function planStrand(
  strand: Strand,
  lanes: number,
  groups: number,
  laneAxis: 'thread.x' | 'thread.y',
  d: Decisions,
): Plan {
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
      [lane, laneAxis],
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
