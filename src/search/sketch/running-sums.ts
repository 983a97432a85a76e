/**
 * Running sums in registers of one thread: reductions run inside a tile of the contiguous loop, whose sums stay in registers
 * until they are complete.
 */
import type { Decisions } from './decisions.ts'
import type { Plan } from './plan.ts'
import { ownLoops, type Strand, type StrandLoop } from './strands.ts'
import { atMost } from './threads.ts'

/** Sizes that the schedule is for, as far as they are given. */
type Sizes = ReadonlyMap<string, number>

/** 0: none, each sum goes through memory. */
const TILES = [0, 4, 8, 16, 32, 64] as const
/** Tiles that fit a machine's registers, so that writing the loop out can help. */
const SMALL = 16

/** Splits loops into the contiguous one, loops over other elements, and the reductions inside of these. */
function partsOf(own: readonly StrandLoop[]): {
  readonly contiguous: StrandLoop | undefined
  readonly heads: readonly StrandLoop[]
  readonly sums: readonly StrandLoop[]
} {
  // It goes inside of all others: none may have an extent of its iterations' own.
  const contiguous = own.findLast(
    (l) => l.role === 'contiguous' && l.constant === null && !own.some((x) => x.inside.has(l.var)),
  )
  const rest = own.filter((l) => l !== contiguous)
  // Reductions after the last loop over other elements: what a sum is whole after.
  const last = rest.findLastIndex((l) => !l.reduce || l.role === 'scatter')
  return { contiguous, heads: rest.slice(0, last + 1), sums: rest.slice(last + 1) }
}

/** True if running sums complete one element after another: no reduction surrounds them. */
export const makesWhole = (strand: Strand): boolean =>
  ![...strand.loops.slice(0, strand.shared), ...partsOf(ownLoops(strand)).heads].some((l) => l.reduce)

export function runningSums(strand: Strand, d: Decisions, sizes: Sizes): Plan {
  const own = ownLoops(strand)
  if (!strand.loops.some((l) => l.reduce)) return elementwise(strand, d)
  const { contiguous, heads, sums } = partsOf(own)
  const around = heads.at(-1)?.var ?? strand.loops[strand.shared - 1]?.var
  return contiguous && sums.length > 0
    ? tiled({ strand, heads, sums, contiguous, around }, d, sizes)
    : scalar({ strand, sums, around }, d, sizes)
}

interface Scalar {
  readonly strand: Strand
  readonly sums: readonly StrandLoop[]
  /** The loop outside of all sums. */
  readonly around: string | undefined
}

interface Tiled extends Scalar {
  readonly heads: readonly StrandLoop[]
  readonly contiguous: StrandLoop
}

const UNROLLS = [1, 2, 4, 8] as const

/** Unroll factor: smaller for segments, which may be short, than for loops of a known size; the remainder is serial. */
function unrollGuess({ size }: StrandLoop, sizes: Sizes): number {
  const most = size === null ? 4 : 8
  return atMost(UNROLLS, Math.min(most, (size === null ? undefined : sizes.get(size)) ?? most))
}

/** A sum of its own for each element. */
function scalar({ strand, sums, around }: Scalar, d: Decisions, sizes: Sizes): Plan {
  const unroll =
    sums.length > 0 ? d.choose(`${strand.name}.unroll`, UNROLLS, unrollGuess(sums.at(-1)!, sizes)) : 1
  return () => ({
    whole: around,
    finish(draft) {
      if (around !== undefined) draft.inRegisters(strand.buffers, around)
      if (sums.length > 0) draft.unroll(sums.at(-1)!.var, unroll)
    },
  })
}

function tiled({ strand, heads, sums, contiguous, around }: Tiled, d: Decisions, sizes: Sizes): Plan {
  const dense = heads.length > 0 && repeats(heads.at(-1)!, sums)
  const given = contiguous.size === null ? undefined : sizes.get(contiguous.size)
  // Tiles go outside of the sums.
  const tiles = sums.some((l) => contiguous.inside.has(l.var)) ? [0] : TILES
  const tile = d.choose(`${strand.name}.tile`, tiles, tileGuess(dense, given))
  const heads_ = heads.map((l) => l.var)
  const sums_ = sums.map((l) => l.var)
  if (tile === 0) {
    const unroll = d.choose(`${strand.name}.unroll`, [1, 4, 8], 4)
    return (draft) => {
      draft.reorder([...heads_, ...sums_, contiguous.var])
      return { whole: around, finish: (late) => late.unroll(contiguous.var, unroll) }
    }
  }
  // Panels: all rows go through one tile of columns before the next one.
  const even = dense && heads.every((l) => l.needs.size === 0)
  const ragged = heads.some((l) => contiguous.inside.has(l.var))
  const orders = ragged ? ['rows'] : even ? ['panels', 'rows'] : ['rows', 'panels']
  const panels = heads.length > 0 && d.choose(`${strand.name}.order`, orders) === 'panels'
  const high = dense && !ragged ? d.choose(`${strand.name}.high`, [1, 2, 4], 2) : 1
  const written = tile <= SMALL ? d.choose(`${strand.name}.written`, ['unrolled', 'loop']) : 'loop'
  return (draft) => {
    const [outer, inner] = draft.split(contiguous.var, tile)
    const row = heads_.at(-1)
    const [rows, within] = row !== undefined && high > 1 ? draft.split(row, high) : [row, undefined]
    const before = rows === undefined ? [] : [...heads_.slice(0, -1), rows]
    const order = panels ? [outer, ...before] : [...before, outer]
    draft.reorder([...order, ...sums_, within, inner])
    const at = order.at(-1)!
    return {
      whole: at,
      finish(late) {
        late.inRegisters(strand.buffers, at)
        late.unroll(inner, written === 'unrolled' ? 0 : 1)
        if (within !== undefined) late.unroll(within, 0)
      },
    }
  }
}

/**
 * Heuristic default of the tile width. A remainder of the result costs more than a wider tile saves, and tiles of concurrent
 * rows share the registers.
 */
function tileGuess(dense: boolean, width: number | undefined): number {
  const even = width && [SMALL, 8, 4].find((t) => width % t === 0 && !(dense && t === SMALL))
  return even || atMost(TILES, Math.min(8, width ?? 8))
}

/** True if all rows run through the same sums, so that several rows can share their reads. */
const repeats = (row: StrandLoop, sums: readonly StrandLoop[]): boolean =>
  row.role === 'rows' && !sums.some((l) => l.needs.has(row.var) || l.role === 'scatter')

function elementwise(strand: Strand, d: Decisions): Plan {
  const last = ownLoops(strand).at(-1)
  if (!last || last.constant !== null) return () => ({ whole: undefined, finish: () => undefined })
  const unroll = d.choose(`${strand.name}.unroll`, [1, 4])
  return () => ({ whole: undefined, finish: (draft) => draft.unroll(last.var, unroll) })
}
