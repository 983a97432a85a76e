/** Running sums of one thread: reductions inside a tile of the contiguous loop, with its sums in registers. */

import { mentions } from '../ir/expressions/expr-tree.ts'
import { accessesOf } from '../ir/statements/accesses.ts'
import type { Decisions, Plan } from './draft.ts'
import { largestUpTo, type Rule, type RuleContext } from './partition.ts'
import { type NestShape, ownLoops, type Strand, type StrandLoop } from './strands.ts'

/** Sizes for which the schedule is specialised, as far as they are given. */
type Sizes = ReadonlyMap<string, number>

/** Widths of tiles; 0: none, each sum goes through memory. */
const TILES = [0, 4, 8, 16, 32, 64] as const
/** Maximum width of a tile that fits the registers, so that unrolling can help. */
const REGISTER_TILE = 16

/** Splits loops into the contiguous one, loops over other elements, and the reductions inside of these. */
function splitLoops(loops: readonly StrandLoop[]): {
  readonly contiguous: StrandLoop | undefined
  readonly heads: readonly StrandLoop[]
  readonly sums: readonly StrandLoop[]
} {
  // It becomes the innermost loop, so no other extent may depend on it.
  const contiguous = loops.findLast(
    (l) => l.role === 'contiguous' && l.constant === null && !loops.some((x) => x.extentNeeds.has(l.var)),
  )
  // Reductions over the same range for all elements go inside: the sum of an element then stays in registers.
  const isFree = (l: StrandLoop): boolean =>
    l.reduce && l.role === 'reduction' && l.needs.size === 0 && !loops.some((x) => x.needs.has(l.var))
  const others = loops.filter((l) => l !== contiguous)
  const remaining = [...others.filter((l) => !isFree(l)), ...others.filter(isFree)]
  // Reductions after the last loop over other elements; after them a sum is complete.
  const last = remaining.findLastIndex((l) => !l.reduce || l.role === 'scatter')
  return { contiguous, heads: remaining.slice(0, last + 1), sums: remaining.slice(last + 1) }
}

/** True if running sums complete one element after another: no reduction surrounds them. */
const completesElements = (strand: Strand): boolean =>
  ![...strand.loops.slice(0, strand.shared), ...splitLoops(ownLoops(strand)).heads].some((l) => l.reduce)

function planRunningSums(strand: Strand, d: Decisions, sizes: Sizes): Plan {
  const loops = ownLoops(strand)
  if (!strand.loops.some((l) => l.reduce)) return planElementwise(strand, d)
  const { contiguous, heads, sums } = splitLoops(loops)
  const outerLoop = heads.at(-1)?.var ?? strand.loops[strand.shared - 1]?.var
  const row = heads.at(-1)
  const isScatter = sums.length === 0 && heads.some((l) => l.role === 'scatter')
  if (contiguous && row && isScatter && !contiguous.extentNeeds.has(row.var))
    return planScatter(strand, heads, contiguous, d, sizes)
  return contiguous && sums.length > 0
    ? planTiles({ strand, heads, sums, contiguous, outerLoop }, d, sizes)
    : planScalar({ strand, sums, outerLoop }, d, sizes)
}

/** Rows that are added to rows of the result: a tile of the row stays in registers while it is added to all of them. */
function planScatter(
  strand: Strand,
  heads: readonly StrandLoop[],
  contiguous: StrandLoop,
  d: Decisions,
  sizes: Sizes,
): Plan {
  const width = contiguous.size === null ? undefined : sizes.get(contiguous.size)
  const tile = d.choose(`${strand.name}.tile`, [0, 4, 8, 16], tileGuess(false, width))
  if (tile === 0) return () => ({ finish: () => undefined })
  const [row, ...others] = heads.map((l) => l.var).reverse()
  const kept = accessesOf(strand.writes).flatMap(({ mode, buffer, index }) => {
    const has = (name: string): boolean => index.some((e) => mentions(e, name))
    return mode === 'read' && has(contiguous.var) && !has(row!) ? [buffer] : []
  })
  return (draft) => {
    const [outer, inner] = draft.split(contiguous.var, tile)
    draft.reorder([...others.reverse(), outer, row, inner])
    return {
      finish(late) {
        for (const buffer of new Set(kept))
          late.attempt(() => late.step({ kind: 'cache_read', buffer, at: { var: outer }, scope: 'register' }))
        late.unroll(inner, 0)
      },
    }
  }
}

interface ScalarSums {
  readonly strand: Strand
  readonly sums: readonly StrandLoop[]
  /** Variable of the innermost loop outside of all sums. */
  readonly outerLoop: string | undefined
}

interface TiledSums extends ScalarSums {
  readonly heads: readonly StrandLoop[]
  readonly contiguous: StrandLoop
}

const UNROLLS = [1, 2, 4, 8] as const

/** Unroll factor: smaller for segments, which may be short, than for loops of a known size; the remainder is serial. */
function unrollGuess({ size }: StrandLoop, sizes: Sizes): number {
  const max = size === null ? 4 : 8
  return largestUpTo(UNROLLS, Math.min(max, (size === null ? undefined : sizes.get(size)) ?? max))
}

/** One accumulator per element, without a tile. */
function planScalar({ strand, sums, outerLoop }: ScalarSums, d: Decisions, sizes: Sizes): Plan {
  const unroll =
    sums.length > 0 ? d.choose(`${strand.name}.unroll`, UNROLLS, unrollGuess(sums.at(-1)!, sizes)) : 1
  return () => ({
    completeAt: outerLoop,
    finish(draft) {
      if (outerLoop !== undefined) draft.cacheInRegisters(strand.buffers, outerLoop)
      if (sums.length > 0) draft.unroll(sums.at(-1)!.var, unroll)
    },
  })
}

function planTiles(
  { strand, heads, sums, contiguous, outerLoop }: TiledSums,
  d: Decisions,
  sizes: Sizes,
): Plan {
  const sharesReads = heads.length > 0 && haveSameSums(heads.at(-1)!, sums)
  const width = contiguous.size === null ? undefined : sizes.get(contiguous.size)
  // Tile loops go outside of the sums, so no sum may depend on the contiguous loop.
  const tiles = sums.some((l) => contiguous.extentNeeds.has(l.var)) ? [0] : TILES
  const tile = d.choose(`${strand.name}.tile`, tiles, tileGuess(sharesReads, width))
  const headVars = heads.map((l) => l.var)
  const sumVars = sums.map((l) => l.var)
  if (tile === 0) {
    const unroll = d.choose(`${strand.name}.unroll`, [1, 4, 8], 4)
    return (draft) => {
      draft.reorder([...headVars, ...sumVars, contiguous.var])
      return { completeAt: outerLoop, finish: (late) => late.unroll(contiguous.var, unroll) }
    }
  }
  // Panels: all rows use one tile of columns before the next one.
  const isUniform = sharesReads && heads.every((l) => l.needs.size === 0)
  const ragged = heads.some((l) => contiguous.extentNeeds.has(l.var))
  const orders = ragged ? ['rows'] : isUniform ? ['panels', 'rows'] : ['rows', 'panels']
  const panels = heads.length > 0 && d.choose(`${strand.name}.order`, orders) === 'panels'
  const tileRows = sharesReads && !ragged ? d.choose(`${strand.name}.high`, [1, 2, 4], 2) : 1
  const form = tile <= REGISTER_TILE ? d.choose(`${strand.name}.written`, ['unrolled', 'loop']) : 'loop'
  return (draft) => {
    const [outer, inner] = draft.split(contiguous.var, tile)
    const row = headVars.at(-1)
    const [rows, rowInTile] = row === undefined ? [] : draft.splitUnlessOne(row, tileRows)
    const outerHeads = rows === undefined ? [] : [...headVars.slice(0, -1), rows]
    const order = panels ? [outer, ...outerHeads] : [...outerHeads, outer]
    draft.reorder([...order, ...sumVars, rowInTile, inner])
    const tileLoop = order.at(-1)!
    return {
      completeAt: tileLoop,
      finish(late) {
        late.cacheInRegisters(strand.buffers, tileLoop)
        late.unroll(inner, form === 'unrolled' ? 0 : 1)
        if (rowInTile !== undefined) late.unroll(rowInTile, 0)
      },
    }
  }
}

/** Heuristic tile width: remainders cost more than wider tiles save; concurrent rows share registers. */
function tileGuess(sharesReads: boolean, width: number | undefined): number {
  const divisor =
    width && [REGISTER_TILE, 8, 4].find((t) => width % t === 0 && !(sharesReads && t === REGISTER_TILE))
  return divisor || largestUpTo(TILES, Math.min(8, width ?? 8))
}

/** True if all rows run through the same sums, so that several rows can share their loads. */
const haveSameSums = (row: StrandLoop, sums: readonly StrandLoop[]): boolean =>
  row.role === 'rows' && !sums.some((l) => l.needs.has(row.var) || l.role === 'scatter')

function planElementwise(strand: Strand, d: Decisions): Plan {
  const last = ownLoops(strand).at(-1)
  if (!last || last.constant !== null) return () => ({ finish: () => undefined })
  const unroll = d.choose(`${strand.name}.unroll`, [1, 4])
  return () => ({ finish: (draft) => draft.unroll(last.var, unroll) })
}

/** The only rule for one thread: running sums for each strand. */
export function sequentialRules({ strands }: NestShape, { decisions, sizes }: RuleContext): readonly Rule[] {
  const [first] = strands
  if (!first) return []
  const plan = (): Plan => {
    const plans = strands.map((s) => planRunningSums(s, decisions, sizes))
    return (draft) => {
      const arranged = plans.map((p) => p(draft))
      return {
        completeAt: arranged[0]!.completeAt,
        finish: (late) => {
          for (const a of arranged) a.finish(late)
        },
      }
    }
  }
  return [{ name: 'running sums', atomic: [], holds: completesElements(first), plan }]
}
