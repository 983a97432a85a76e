/** A thread for each element of the result, or for a few that lie side by side: all of its sums are in one thread. */
import type { Decisions } from './decisions.ts'
import type { Plan } from './plan.ts'
import type { Strand, StrandLoop } from './strands.ts'
import {
  type Around,
  atMost,
  type BlockShape,
  chooseAhead,
  type Dealt,
  lanesGuess,
  requireOf,
  within,
} from './threads.ts'

export function elementParallel(strand: Strand, of: Dealt, around: Around, shape: BlockShape): Plan {
  return of.inner ? grid(strand, of, of.inner, around, shape) : line(strand, of, around, shape)
}

/** Neighbouring threads have neighbouring iterations of the outer loop. */
function line(strand: Strand, { lead, outer, middle, sums }: Dealt, around: Around, shape: BlockShape): Plan {
  const d = around.decisions
  const threads = d.choose(`${shape.name}.threads`, within([32, 64, 128, 256], around.threads), 128)
  const ahead = sums.length > 0 ? chooseAhead(strand.name, d) : undefined
  return (draft) => {
    const [blocks, thread] = draft.split(outer.var, threads)
    draft.reorder([lead?.var, blocks, thread, ...[...middle, ...sums].map((l) => l.var)])
    draft.bind([...(lead ? [[lead.var, 'block.z'] as const] : []), [blocks, 'block.x'], [thread, 'thread.x']])
    return {
      whole: thread,
      finish(late) {
        late.inRegisters(strand.buffers, middle.at(-1)?.var ?? thread)
        if (ahead) late.unroll(sums.at(-1)!.var, ahead.by, ahead.predicated)
      },
    }
  }
}

/** Iterations that are written one after the other. */
const SHORT = 32
/** Statements that a guess writes out for one round of a loop, which may be unrolled besides. */
const MOST_WRITTEN = 128

/** Product of the loops' trip counts; null if one of them is not constant, or there are no loops. */
const lengthOf = (loops: readonly StrandLoop[]): number | null =>
  loops.length === 0 ? null : loops.reduce<number | null>((n, l) => l.constant && n && n * l.constant, 1)

/** Registers that the results of a thread may take, and loads of one of them that are written one after the other. */
const RESULTS = 64

/**
 * Rows that a thread goes through. Where all have one length, so many that every block has as many slots, whatever the
 * length (SparseTIR, section 4.2.1).
 */
function turnsOf({ name }: Strand, sums: readonly StrandLoop[], rows: number, d: Decisions): number {
  const length = lengthOf(sums)
  if (length === null) return d.choose(`${name}.turns`, [1, 2, 4, 8])
  const slots = d.choose(`${name}.slots`, [32, 64, 128, 256, 512], 128)
  return Math.max(1, Math.floor(slots / length / rows))
}

/** Rows of a block's threads have rows of the result. */
function grid(
  strand: Strand,
  { lead, outer, middle, sums }: Dealt,
  inner: NonNullable<Dealt['inner']>,
  around: Around,
  shape: BlockShape,
): Plan {
  const d = around.decisions
  const { name } = strand
  const rows = d.choose(`${shape.name}.rows`, [1, 2, 4, 8, 16, 32], 8)
  const widths = within([8, 16, 32, 64, 128], around.threads / rows)
  const lanes = d.choose(
    `${shape.name}.lanes`,
    widths,
    sums.length > 0 ? lanesGuess(widths, inner, around, 16) : atMost(widths, 32),
  )
  // Elements of a segment are few, and begin anywhere.
  const each = inner.needs.size > 0 ? 1 : d.choose(`${name}.each`, [1, 2, 4, 8], sums.length > 0 ? 4 : 1)
  const turns = inner.needs.size > 0 ? 1 : turnsOf(strand, sums, rows, d)
  const wide = each > 1 ? d.choose(`${name}.wide`, ['vector', 'unrolled']) : 'unrolled'
  const short = sums.at(-1)?.constant ?? undefined
  // Blocks of 16 × 16 written out for four columns took NVRTC minutes.
  const isLong = short !== undefined && (lengthOf(middle) ?? 1) * each * short > MOST_WRITTEN
  const written = ['unrolled', 'loop'] as const
  const whole =
    short !== undefined &&
    short <= SHORT &&
    d.choose(`${name}.written`, written, isLong ? 'loop' : 'unrolled')
  // What the innermost sum leaves to be gone through is the loop around it.
  const long = short === undefined ? sums.at(-1) : whole === 'unrolled' ? sums.at(-2) : undefined
  const ahead = long && long.constant === null ? chooseAhead(name, d) : undefined
  // All results that one operand is for, at once: what is loaded for one of them is there for the others.
  const results = lengthOf(middle)
  const fits = results !== null && middle.length > 0 && results * each <= RESULTS && sums.length > 0
  const apart = middle.some((l) => inner.needs.has(l.var))
  const ways = results === 1 ? ['together'] : ['together', 'one by one']
  const together = fits && !apart && d.choose(`${name}.results`, ways) === 'together'
  return (draft) => {
    requireOf(draft, inner, each, around)
    const [block, share] = rows * turns > 1 ? draft.split(outer.var, rows * turns) : [outer.var, undefined]
    const [turn, own] =
      share === undefined || turns === 1
        ? [undefined, share]
        : rows === 1
          ? [share, undefined]
          : draft.split(share, rows)
    // What lies in a segment is shared out within the block that has the segment.
    const tiles = inner.needs.size > 0 ? undefined : draft.split(inner.var, lanes * each)
    const [tile, strip] = tiles ?? draft.split(inner.var, lanes)
    const [lane, vector] = each > 1 ? draft.split(strip, each) : ([strip, undefined] as const)
    const inside = together ? [...sums, ...middle] : [...middle, ...sums]
    const [above, below] = [true, false].map((needed) =>
      inside.filter((l) => inner.needs.has(l.var) === needed).map((l) => l.var),
    )
    const [before, after] = tiles ? [tile, undefined] : [undefined, tile]
    draft.reorder([lead?.var, block, before, own, ...above!, after, lane, turn, ...below!, vector])
    draft.bind([
      ...(lead ? [[lead.var, 'block.z'] as const] : []),
      [block, 'block.x'],
      ...(tiles ? [[tile, 'block.y'] as const] : []),
      ...(own === undefined ? [] : [[own, 'thread.y'] as const]),
      [lane, 'thread.x'],
    ])
    return {
      whole: turn ?? lane,
      finish(late) {
        const result = together ? undefined : below!.find((v) => middle.at(-1)?.var === v)
        late.inRegisters(strand.buffers, result ?? turn ?? lane)
        if (vector !== undefined)
          if (wide === 'vector') late.vectorize(vector)
          else late.unroll(vector, 0)
        if (together) for (const l of middle) late.unroll(l.var, 0)
        if (whole === 'unrolled') late.unroll(sums.at(-1)!.var, 0)
        if (ahead) late.unroll(long!.var, ahead.by, ahead.predicated)
      },
    }
  }
}
