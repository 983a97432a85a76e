/** Several results of a row one after the other: a thread, some neighbouring threads or a block for each row. */
import type { Decisions } from './decisions.ts'
import type { Arranged, Plan } from './plan.ts'
import { type NestShape, ownLoops, type Strand, type StrandLoop } from './strands.ts'
import { type Around, atMost, type BlockShape, within } from './threads.ts'

/** The loop over rows that all strands share; `undefined` if they share more, or other loops. */
export function rowsOf({ strands }: NestShape): StrandLoop | undefined {
  const [row] = strands[0]!.loops
  const plain = row && row.role === 'rows' && !row.reduce
  return plain && strands.every((s) => s.shared === 1) ? row : undefined
}

/** True if a strand has a contiguous loop that vectors can cover. */
export const hasVectors = (strands: readonly Strand[]): boolean =>
  strands.some((s) => contiguousIn(s) !== undefined)

/** Loops of a row stay in its thread. */
export function rowPerThread({ called, strands }: NestShape, row: StrandLoop, around: Around): Plan {
  const threads = around.decisions.choose(`${called}.threads`, within([32, 64, 128, 256], around.threads), 64)
  return (draft) => {
    const [blocks, thread] = draft.split(row.var, threads)
    draft.bind([
      [blocks, 'block.x'],
      [thread, 'thread.x'],
    ])
    return {
      whole: thread,
      finish(late) {
        for (const s of strands) {
          late.inRegisters(s.buffers, thread)
          const spatial = ownLoops(s).findLast((l) => !l.reduce)
          if (spatial && s.loops.at(-1) !== spatial) late.inRegisters(s.buffers, spatial.var)
        }
      },
    }
  }
}

/**
 * Distributes the loops of a row over neighbouring threads, which combine their values and keep the result: the threads of a
 * group, or of all groups of a block (`whole`), which then has as many threads as with a row per group.
 */
export function rowPerGroup(
  { strands }: NestShape,
  row: StrandLoop,
  around: Around,
  { name: shape }: BlockShape,
  whole: boolean,
): Plan {
  const d = around.decisions
  // A row that has vectors to go through is work for a block; else blocks of some short rows.
  const isWide = hasVectors(strands)
  const rows = d.choose(`${shape}.rows`, [1, 2, 4, 8, 16, 32], isWide ? 1 : 8)
  const widths = within([4, 8, 16, 32, 64, 128, 256], around.threads / rows)
  const lanes = d.choose(`${shape}.lanes`, widths, atMost(widths, isWide ? 64 : 16))
  const plans = strands.map((s) => lanesOf(s, lanes, whole ? rows : 1, d))
  return (draft) => {
    const [blocks, group] = rows > 1 && !whole ? draft.split(row.var, rows) : ([row.var, undefined] as const)
    draft.bind([[blocks, 'block.x'], ...(group === undefined ? [] : [[group, 'thread.y'] as const])])
    const arranged = plans.map((plan): readonly [Strand, Arranged] => [plan.strand, plan.plan(draft)])
    return {
      whole: undefined,
      finish(late) {
        for (const [s, a] of arranged) {
          late.inRegisters(s.buffers, group ?? blocks)
          a.finish(late)
        }
      },
    }
  }
}

/** The contiguous loop, independent of the row. */
const contiguousIn = (strand: Strand): StrandLoop | undefined =>
  ownLoops(strand).findLast((l) => l.role === 'contiguous' && l.needs.size === 0)

/** `groups`: that share a row. */
function lanesOf(
  strand: Strand,
  lanes: number,
  groups: number,
  d: Decisions,
): { readonly strand: Strand; readonly plan: Plan } {
  const own = ownLoops(strand)
  const over = contiguousIn(strand) ?? own[0]
  if (!over) return { strand, plan: () => ({ whole: undefined, finish: () => undefined }) }
  const rest = own.filter((l) => l !== over)
  const sum = over.reduce || rest.some((l) => l.reduce)
  const ahead = d.choose(`${strand.name}.ahead`, [1, 2, 4], 2)
  const predicated = sum && ahead > 1
  return {
    strand,
    plan(draft) {
      const [turns, thread] = draft.split(over.var, groups * lanes)
      const [group, lane] = groups > 1 ? draft.split(thread, lanes) : [undefined, thread]
      draft.reorder([turns, group, lane, ...rest.map((l) => l.var)])
      draft.bind([...(group === undefined ? [] : [[group, 'thread.y'] as const]), [lane, 'thread.x']])
      return {
        whole: undefined,
        finish(late) {
          if (!over.reduce && rest.some((l) => l.reduce)) late.inRegisters(strand.buffers, lane)
          const unrolled = rest.findLast((l) => l.reduce)?.var ?? turns
          late.unroll(unrolled, ahead, predicated)
        },
      }
    },
  }
}
