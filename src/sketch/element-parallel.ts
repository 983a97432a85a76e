/** A thread for each element of the result, or for several contiguous ones, with all reductions inside the thread. */
import type { Decisions, Plan } from './draft.ts'
import {
  type BlockShape,
  bounds,
  chooseUnroll,
  largestUpTo,
  type Partition,
  type RuleContext,
  VECTOR,
  valuesUpTo,
} from './partition.ts'
import type { Strand, StrandLoop } from './strands.ts'
import { guessLanes, requireMultiple, tripCount } from './trip-counts.ts'

export function planElements(
  strand: Strand,
  partition: Partition,
  context: RuleContext,
  shape: BlockShape,
): Plan {
  return partition.inner
    ? planGrid(strand, partition, partition.inner, context, shape)
    : planLine(strand, partition, context, shape)
}

/** Distributes the outer loop over threads: neighbouring threads have neighbouring iterations. */
function planLine(
  strand: Strand,
  { lead, outer, middle, sums }: Partition,
  context: RuleContext,
  shape: BlockShape,
): Plan {
  const d = context.decisions
  const threads = d.choose(`${shape.name}.threads`, valuesUpTo([32, 64, 128, 256], context.threads), 128)
  const unroll = sums.length > 0 ? chooseUnroll(strand.name, d) : undefined
  return (draft) => {
    const [blocks, thread] = draft.split(outer.var, threads)
    draft.reorder([lead?.var, blocks, thread, ...[...middle, ...sums].map((l) => l.var)])
    draft.bind([
      [lead?.var, 'block.z'],
      [blocks, 'block.x'],
      [thread, 'thread.x'],
    ])
    return {
      completeAt: thread,
      finish(late) {
        late.cacheInRegisters(strand.buffers, middle.at(-1)?.var ?? thread)
        if (unroll) late.unroll(sums.at(-1)!.var, unroll.by, unroll.predicated)
      },
    }
  }
}

/** Longest reduction that may be unrolled completely. */
const MAX_UNROLLED = 32
/** Statements per iteration up to which complete unrolling is the default. */
const MAX_STATEMENTS = 128

/** Product of the loops' trip counts; `null` if one of them is not constant, or there are no loops. */
const lengthOf = (loops: readonly StrandLoop[]): number | null =>
  loops.length === 0 ? null : loops.reduce<number | null>((n, l) => l.constant && n && n * l.constant, 1)

/** Registers for the results of a thread. */
const MAX_RESULTS = 64
/** Rows of threads in a block whose threads have tiles of results: a block of 1,024 threads has 64 registers for each. */
const ROWS_OF_TILES = 2

/** Number of rows per thread; for rows of one length from the slots per block (SparseTIR, section 4.2.1). */
function chooseRowsPerThread(
  { name }: Strand,
  sums: readonly StrandLoop[],
  rows: number,
  d: Decisions,
): number {
  const length = lengthOf(sums)
  if (length === null) return d.choose(`${name}.turns`, [1, 2, 4, 8])
  const slots = d.choose(`${name}.slots`, [32, 64, 128, 256, 512], 128)
  return Math.max(1, Math.floor(slots / length / rows))
}

/**
 * The default vector length of a loop: shorter if its known size leaves some of the `lanes` idle, or if the results of a thread would not
 * fit the registers.
 */
const guessVector = (
  inner: StrandLoop,
  { lanes, results }: { readonly lanes: number; readonly results: number | null },
  context: RuleContext,
): number => {
  const elements = (tripCount(inner, context) ?? VECTOR * lanes) / lanes
  const inRegisters = results === null || results > MAX_RESULTS ? VECTOR : MAX_RESULTS / results
  return largestUpTo([1, 2, 4], Math.min(elements, inRegisters))
}

/** Distributes rows of the result over rows of a block's threads. */
function planGrid(
  strand: Strand,
  { lead, outer, middle, sums }: Partition,
  inner: NonNullable<Partition['inner']>,
  context: RuleContext,
  shape: BlockShape,
): Plan {
  const d = context.decisions
  const { name } = strand
  const results = lengthOf(middle)
  const isTile = results !== null && results >= 8 && results <= MAX_RESULTS && sums.length > 0
  const rows = d.choose(`${shape.name}.rows`, [1, 2, 4, 8, 16, 32], isTile ? ROWS_OF_TILES : 8)
  const widths = valuesUpTo([8, 16, 32, 64, 128], context.threads / rows)
  const lanes = d.choose(
    `${shape.name}.lanes`,
    widths,
    sums.length > 0 ? guessLanes(widths, inner, context, 16) : largestUpTo(widths, 32),
  )
  // Vectors need aligned elements, which segments do not have, and a loop that does not bound a segment inside of the loop.
  const vectors = [1, 2, 4, 8]
  const vectorLength =
    inner.needs.size > 0 || bounds(inner, [...middle, ...sums])
      ? 1
      : d.choose(
          `${name}.each`,
          vectors,
          sums.length > 0 ? guessVector(inner, { lanes: widths[0]!, results }, context) : 1,
        )
  const rowsPerThread = inner.needs.size > 0 ? 1 : chooseRowsPerThread(strand, sums, rows, d)
  const vectorForm = vectorLength > 1 ? d.choose(`${name}.wide`, ['vector', 'unrolled']) : 'unrolled'
  const sumLength = sums.at(-1)?.constant ?? undefined
  // Fully unrolled 16 × 16 blocks with four columns took NVRTC minutes.
  const isLong =
    sumLength !== undefined && (lengthOf(middle) ?? 1) * vectorLength * sumLength > MAX_STATEMENTS
  const forms = ['unrolled', 'loop'] as const
  const sumForm =
    sumLength !== undefined &&
    sumLength <= MAX_UNROLLED &&
    d.choose(`${name}.written`, forms, isLong ? 'loop' : 'unrolled')
  // The innermost reduction loop that remains a loop.
  const longSum = sumLength === undefined ? sums.at(-1) : sumForm === 'unrolled' ? sums.at(-2) : undefined
  const unroll = longSum && longSum.constant === null ? chooseUnroll(name, d) : undefined
  // Computing all results of an operand together reuses its loads.
  const fits =
    results !== null && middle.length > 0 && results * vectorLength <= MAX_RESULTS && sums.length > 0
  const isDependent = middle.some((l) => inner.needs.has(l.var))
  const orders = results === 1 ? ['together'] : ['together', 'one by one']
  const together = fits && !isDependent && d.choose(`${name}.results`, orders) === 'together'
  return (draft) => {
    requireMultiple(draft, inner, vectorLength, context)
    const [block, share] = draft.splitUnlessOne(outer.var, rows * rowsPerThread)
    const [turn, row] =
      share === undefined || rowsPerThread === 1
        ? [undefined, share]
        : rows === 1
          ? [share, undefined]
          : draft.split(share, rows)
    // Elements of a segment are distributed within the block that has the segment.
    const tiles = inner.needs.size > 0 ? undefined : draft.split(inner.var, lanes * vectorLength)
    const [tile, strip] = tiles ?? draft.split(inner.var, lanes)
    const [lane, vector] = draft.splitUnlessOne(strip, vectorLength)
    const serial = together ? [...sums, ...middle] : [...middle, ...sums]
    const [outerSerial, innerSerial] = [true, false].map((needed) =>
      serial.filter((l) => inner.needs.has(l.var) === needed).map((l) => l.var),
    )
    const [before, after] = tiles ? [tile, undefined] : [undefined, tile]
    const around = [lead?.var, block, before, row, ...outerSerial!]
    draft.reorder([...around, after, lane, turn, ...innerSerial!, vector])
    draft.bind([
      [lead?.var, 'block.z'],
      [block, 'block.x'],
      [before, 'block.y'],
      [row, 'thread.y'],
      [lane, 'thread.x'],
    ])
    return {
      completeAt: turn ?? lane,
      finish(late) {
        const result = together ? undefined : innerSerial!.find((v) => middle.at(-1)?.var === v)
        late.cacheInRegisters(strand.buffers, result ?? turn ?? lane)
        if (vector !== undefined)
          if (vectorForm === 'vector') late.vectorize(vector)
          else late.unroll(vector, 0)
        if (together) for (const l of middle) late.unroll(l.var, 0)
        if (sumForm === 'unrolled') late.unroll(sums.at(-1)!.var, 0)
        if (unroll) late.unroll(longSum!.var, unroll.by, unroll.predicated)
      },
    }
  }
}
