/**
 * Tiling of a dense product: a block computes a tile of the result, a thread a square of it in registers, and the operands
 * pass through shared memory in slices of the sum (register and shared-memory blocking).
 */
import { accessesOf } from '../../ir/accesses.ts'
import { mentions, someExpr } from '../../ir/expr-tree.ts'
import type { Draft, Schedulable } from './draft.ts'
import type { Plan } from './plan.ts'
import type { Strand, StrandLoop } from './strands.ts'
import { type Around, type Dealt, divides, requireOf } from './threads.ts'

/** Elements of a square's side that lie side by side: one access of 16 bytes of f32. */
const RUN = 4

interface Operand {
  readonly buffer: string
  /** True if the operand is contiguous along the sum. */
  readonly alongSum: boolean
  /** True if the operand has the tile's rows; false for its columns. */
  readonly isOuter: boolean
}

/** Operands that a tile reuses: read once for each row or column of it and each iteration of the sum. */
export function reusedBy(strand: Strand, { outer, inner, middle, sums }: Dealt): readonly Operand[] {
  const [sum] = sums
  const free = (l: StrandLoop | undefined): boolean =>
    l !== undefined && l.needs.size === 0 && l.constant === null
  if (!inner || !sum || sums.length > 1 || middle.length > 0) return []
  // A copy would always read what is asked for under a condition.
  if (strand.isConditional) return []
  if (![outer, inner, sum].every(free) || inner.role !== 'contiguous' || outer.reduce) return []
  const out = new Map<string, Operand>()
  for (const { buffer, index, mode } of accessesOf(strand.writes)) {
    if (mode === 'write' || !index.some((e) => mentions(e, sum.var))) continue
    const of = [outer, inner].filter((l) => index.some((e) => mentions(e, l.var)))
    const gathered = index.some((e) => someExpr(e, (x) => x.kind === 'load' || x.kind === 'search'))
    if (of.length !== 1 || gathered) return []
    out.set(buffer, { buffer, alongSum: mentions(index.at(-1)!, sum.var), isOuter: of[0] === outer })
  }
  return out.size >= 2 ? [...out.values()] : []
}

export function denseTiles(strand: Strand, of: Dealt, operands: readonly Operand[], around: Around): Plan {
  const { lead, outer, sums } = of
  const inner = of.inner!
  const sum = sums[0]!
  const d = around.decisions
  const { name } = strand
  // One square of a thread, or four that lie half a tile apart: threads side by side then read runs side by side.
  const squares = d.choose(`${name}.squares`, [1, 4], 4)
  const rows = d.choose(`${name}.rows`, [32, 64, 128], 64)
  const side = (squares === 4 ? 2 : 1) * RUN
  const fits = (cols: number): boolean => (rows / side) * (cols / side) <= around.threads
  const cols = d.choose(`${name}.cols`, [32, 64, 128].filter(fits), fits(128) ? 128 : 64)
  const depth = d.choose(`${name}.depth`, [8, 16, 32], 8)
  const stages = d.choose(`${name}.stages`, [1, 2, 3], 2)
  const copies = d.choose(`${name}.copies`, ['in registers too', 'shared'])
  return (draft) => {
    const tiled = [
      [outer, rows],
      [inner, cols],
      [sum, depth],
    ] as const
    // All or none: where only some are whole, guards are as many.
    const whole = tiled.every(([l, by]) => divides(by, l, around))
    if (whole) for (const [l, by] of tiled) requireOf(draft, l, by, around)
    const [i, j] = [outer, inner].map((l, k) => square(draft, l.var, k === 0 ? rows : cols, squares === 4))
    const [slices, step] = draft.split(sum.var, depth)
    draft.reorder([lead?.var, i!.block, j!.block, i!.thread, j!.thread, slices, step, ...i!.own, ...j!.own])
    draft.bind([
      ...(lead ? [[lead.var, 'block.z'] as const] : []),
      [i!.block, 'block.y'],
      [j!.block, 'block.x'],
      [i!.thread, 'thread.y'],
      [j!.thread, 'thread.x'],
    ])
    return {
      whole: j!.thread,
      finish(late) {
        late.inRegisters(strand.buffers, j!.thread)
        const tiles = operands.map(({ buffer, alongSum, isOuter }) =>
          shared(late, buffer, slices, alongSum ? (isOuter ? rows : cols) : null, whole),
        )
        if (copies !== 'shared')
          for (const tile of tiles)
            late.attempt(() =>
              late.step({ kind: 'cache_read', buffer: tile, at: { var: step }, scope: 'register' }),
            )
        if (stages > 1) late.step({ kind: 'pipeline', loop: { var: slices }, by: stages })
        for (const l of [step, ...i!.own, ...j!.own]) late.unroll(l, 0)
      },
    }
  }
}

interface Square {
  readonly block: string
  readonly thread: string
  readonly own: readonly string[]
}

function square<K extends Schedulable<K>>(
  draft: Draft<K>,
  loop: string,
  size: number,
  halves: boolean,
): Square {
  const [block, tile] = draft.split(loop, size)
  const [half, quarter] = halves ? draft.split(tile, size / 2) : [undefined, tile]
  const [thread, run] = draft.split(quarter!, RUN)
  return { block, thread, own: half === undefined ? [run] : [half, run] }
}

/** A copy in shared memory; its name. By columns where a thread needs neighbouring ones of its `rows`, apart in banks. */
function shared<K extends Schedulable<K>>(
  draft: Draft<K>,
  buffer: string,
  at: string,
  rows: number | null,
  whole: boolean,
): string {
  const into = draft.freshBuffer(`${buffer}s`)
  const layout = rows === null ? {} : { transposed: true, stride: rows + RUN }
  const copy = (how: object): void =>
    draft.step({ kind: 'cache_read', buffer, at: { var: at }, scope: 'shared', into, ...layout, ...how })
  // What a tile lacks counts as 0 where that changes nothing.
  if (whole ? !draft.attempt(() => copy({ by: RUN })) : !draft.attempt(() => copy({ padded: 0 }))) copy({})
  return into
}
