/** Tiles of a dense product (register and shared-memory blocking): a square per thread, operands in slices. */

import { mentions, someExpr } from '../ir/expressions/expr-tree.ts'
import { accessesOf } from '../ir/statements/accesses.ts'
import type { Draft, Plan, Schedulable } from './draft.ts'
import type { Partition, RuleContext } from './partition.ts'
import type { Strand, StrandLoop } from './strands.ts'
import { divides, requireMultiple, tripCount } from './trip-counts.ts'

/** Contiguous elements of a square's side: one access of 16 bytes of f32. */
const RUN = 4

/** Minimum length of a sum of constant length that is worth slices in shared memory. */
const MIN_CONSTANT_SUM = 128

interface Operand {
  readonly buffer: string
  /** True if the operand is contiguous along the sum. */
  readonly alongSum: boolean
  /** True if the operand has the tile's rows; false for its columns. */
  readonly isOuter: boolean
}

/** Operands loaded once per row or column of the tile and iteration of the sum; empty if there is no dense product. */
export function reusedOperands(
  strand: Strand,
  { lead, outer, inner, middle, sums }: Partition,
): readonly Operand[] {
  const [sum] = sums
  const isFree = (l: StrandLoop | undefined): boolean =>
    l !== undefined && l.needs.size === 0 && l.constant === null
  if (!inner || !sum || sums.length > 1 || middle.length > 0) return []
  // A copy to shared memory would load conditional accesses unconditionally.
  if (strand.isConditional) return []
  // All chunks of a sum have the same length, but the last chunk may end early.
  const isChunk = (sum.constant ?? 0) >= MIN_CONSTANT_SUM && [...sum.needs].every((v) => v === lead?.var)
  if (!isFree(outer) || !isFree(inner) || !(isFree(sum) || (isChunk && sum.extentNeeds.size === 0))) return []
  if (inner.role !== 'contiguous' || outer.reduce) return []
  const operands = new Map<string, Operand>()
  for (const { buffer, index, mode } of accessesOf(strand.writes)) {
    if (mode === 'write' || !index.some((e) => mentions(e, sum.var))) continue
    const tileLoops = [outer, inner].filter((l) => index.some((e) => mentions(e, l.var)))
    const isGathered = index.some((e) => someExpr(e, (x) => x.kind === 'load' || x.kind === 'search'))
    if (tileLoops.length !== 1 || isGathered) return []
    operands.set(buffer, {
      buffer,
      alongSum: mentions(index.at(-1)!, sum.var),
      isOuter: tileLoops[0] === outer,
    })
  }
  return operands.size >= 2 ? [...operands.values()] : []
}

export function planDenseTiles(
  strand: Strand,
  partition: Partition,
  operands: readonly Operand[],
  context: RuleContext,
): Plan {
  const { lead, outer, sums } = partition
  const inner = partition.inner!
  const sum = sums[0]!
  const d = context.decisions
  const { name } = strand
  // One square per thread, or four that are half a tile apart, so that neighbouring threads load neighbouring runs.
  const squares = d.choose(`${name}.squares`, [1, 4], 4)
  const rows = d.choose(`${name}.rows`, [32, 64, 128], guessTile(outer, 64, context))
  const side = (squares === 4 ? 2 : 1) * RUN
  const fits = (cols: number): boolean => (rows / side) * (cols / side) <= context.threads
  const widths = [32, 64, 128].filter(fits)
  const cols = d.choose(`${name}.cols`, widths, guessTile(inner, widths.at(-1)!, context))
  const depth = d.choose(`${name}.depth`, [8, 16, 32], 8)
  const stages = d.choose(`${name}.stages`, [1, 2, 3], 2)
  const copies = d.choose(`${name}.copies`, ['in registers too', 'shared'])
  return (draft) => {
    const tileSizes = [
      [outer, rows],
      [inner, cols],
      [sum, depth],
    ] as const
    // Requires divisibility of all three loops or of none: if only some are divisible, as many guards remain.
    const divisible = tileSizes.every(([l, size]) => divides(size, l, context))
    if (divisible) for (const [l, size] of tileSizes) requireMultiple(draft, l, size, context)
    const [i, j] = [outer, inner].map((l, k) =>
      splitSquare(draft, l.var, k === 0 ? rows : cols, squares === 4),
    )
    const [slices, step] = draft.split(sum.var, depth)
    const elements = [...i!.elements, ...j!.elements]
    draft.reorder([lead?.var, i!.block, j!.block, i!.thread, j!.thread, slices, step, ...elements])
    draft.bind([
      [lead?.var, 'block.z'],
      [i!.block, 'block.y'],
      [j!.block, 'block.x'],
      [i!.thread, 'thread.y'],
      [j!.thread, 'thread.x'],
    ])
    return {
      completeAt: j!.thread,
      finish(late) {
        late.cacheInRegisters(strand.buffers, j!.thread)
        const tiles = operands.map(({ buffer, alongSum, isOuter }) =>
          cacheShared(late, buffer, slices, alongSum ? (isOuter ? rows : cols) : null, divisible),
        )
        if (copies !== 'shared')
          for (const tile of tiles)
            late.attempt(() =>
              late.step({ kind: 'cache_read', buffer: tile, at: { var: step }, scope: 'register' }),
            )
        if (stages > 1) late.step({ kind: 'pipeline', loop: { var: slices }, by: stages })
        for (const l of [step, ...elements]) late.unroll(l, 0)
      },
    }
  }
}

/** The default side of a tile: `side`, or the next power of two of a known smaller extent; at least 32. */
function guessTile(loop: StrandLoop, side: number, context: RuleContext): number {
  const extent = tripCount(loop, context) ?? side
  return Math.max(32, Math.min(side, 2 ** Math.ceil(Math.log2(Math.max(1, extent)))))
}

interface Square {
  readonly block: string
  readonly thread: string
  readonly elements: readonly string[]
}

function splitSquare<K extends Schedulable<K>>(
  draft: Draft<K>,
  loop: string,
  size: number,
  halves: boolean,
): Square {
  const [block, tile] = draft.split(loop, size)
  const [half, quarter] = halves ? draft.split(tile, size / 2) : [undefined, tile]
  const [thread, run] = draft.split(quarter!, RUN)
  return { block, thread, elements: half === undefined ? [run] : [half, run] }
}

/** Copies a tile to shared memory; transposed if a thread reads along its `rows`, padded against bank conflicts. */
function cacheShared<K extends Schedulable<K>>(
  draft: Draft<K>,
  buffer: string,
  loop: string,
  rows: number | null,
  divisible: boolean,
): string {
  const name = draft.freshBuffer(`${buffer}s`)
  const layout = rows === null ? {} : { transposed: true, stride: rows + RUN }
  const cacheRead = { kind: 'cache_read', buffer, at: { var: loop }, scope: 'shared', into: name } as const
  const copy = (options: object): void => draft.step({ ...cacheRead, ...layout, ...options })
  // Incomplete tiles are padded with zeros if that does not change the result.
  if (divisible ? !draft.attempt(() => copy({ by: RUN })) : !draft.attempt(() => copy({ padded: 0 })))
    copy({})
  return name
}
