/** Serial work of threads: on average, in the longest thread of a warp and of a block, and at most. */
import type { For } from '../../ir/loops.ts'
import { tripsInOrder } from './frames.ts'
import { isWhole } from './whole.ts'

export interface Serial {
  readonly mean: number
  /** Of the longest thread of a warp, and of a block: the mean over them. */
  readonly warp: number
  readonly block: number
  /** Of the longest of all. */
  readonly most: number
}

const COUNTED = [
  /** Executions of statements. */
  'steps',
  /** Iterations of reads in flight together, and their number without unrolling. */
  'rounds',
  'waits',
  /** Reads that wait for their address. */
  'hops',
  /** Steps of searches. */
  'probes',
  /** Reads that the near cache has not. */
  'misses',
  /** Exchanges of registers with others of the warp, and through shared memory with others of the block. */
  'exchanges',
  'barriers',
] as const
type Counted = (typeof COUNTED)[number]

/** Of one thread. */
export type Steps = Readonly<Record<Counted, Serial>>

/**
 * Accumulator: a row of numbers with a `Serial` for each `COUNTED`. A walk makes hundreds of rows, so all share one array,
 * and a row is its offset.
 */
export type Row = number

const KINDS = 4
const SIZE = KINDS * COUNTED.length
const at = (name: Counted): number => KINDS * COUNTED.indexOf(name)
const [STEPS, WAITS, HOPS, PROBES, MISSES, EXCHANGES] = [
  at('steps'),
  at('waits'),
  at('hops'),
  at('probes'),
  at('misses'),
  at('exchanges'),
]

/** Nothing; never written. */
export const IDLE: Row = 0

let rows = new Float64Array(256 * SIZE)
let end = SIZE

/** Rows that were made before are no more: a walk begins. */
export function forgetRows(): void {
  end = SIZE
}

/** A row that holds anything. */
function made(): Row {
  const row = end
  end += SIZE
  if (end <= rows.length) return row
  const more = new Float64Array(2 * rows.length)
  more.set(rows)
  rows = more
  return row
}

export const stepsOf = (row: Row): Steps =>
  Object.fromEntries(
    COUNTED.map((name, k) => {
      const [mean, warp, block, most] = rows.subarray(row + KINDS * k, row + KINDS * (k + 1))
      return [name, { mean, warp, block, most }]
    }),
  ) as unknown as Steps

/** A row of counts that are uniform across threads. */
export function same(counts: Readonly<Record<Counted, number>>): Row {
  const out = made()
  for (let k = 0; k < COUNTED.length; k++)
    rows.fill(counts[COUNTED[k]!], out + KINDS * k, out + KINDS * (k + 1))
  return out
}

/** One after the other. */
export function both(a: Row, b: Row): Row {
  if (a === IDLE) return b
  if (b === IDLE) return a
  const out = made()
  for (let k = 0; k < SIZE; k++) rows[out + k] = rows[a + k]! + rows[b + k]!
  return out
}

/** One of two, the first in a share of the cases. */
export function either(share: number, a: Row, b: Row): Row {
  const out = made()
  for (let k = 0; k < SIZE; k += KINDS) {
    for (let j = k; j < k + 3; j++) rows[out + j] = share * rows[a + j]! + (1 - share) * rows[b + j]!
    rows[out + k + 3] = Math.max(rows[a + k + 3]!, rows[b + k + 3]!)
  }
  return out
}

/** A case among others, of which threads of a warp and of a block wait for the longest. */
export interface Case {
  readonly share: number
  /** Ratios of the longest thread in a warp, in a block and in the whole case to the average. */
  readonly inWarp: number
  readonly inBlock: number
  readonly longest: number
}

export function among(): Row {
  const out = made()
  rows.fill(0, out, out + SIZE)
  return out
}

/** Adds a case to `sum`. */
export function addCase(sum: Row, one: Row, { share, inWarp, inBlock, longest }: Case): void {
  for (let k = 0; k < SIZE; k += KINDS) {
    rows[sum + k]! += share * rows[one + k]!
    rows[sum + k + 1]! += share * inWarp * rows[one + k + 1]!
    rows[sum + k + 2]! += share * inBlock * rows[one + k + 2]!
    rows[sum + k + 3] = Math.max(rows[sum + k + 3]!, rows[one + k + 3]! * longest)
  }
}

/** The same with other means of the steps. */
export function withMeanSteps(row: Row, times: number): Row {
  if (times === 1) return row
  const out = made()
  rows.copyWithin(out, row, row + SIZE)
  rows[out + STEPS]! *= times
  return out
}

/** The same where one instruction does all of it. */
export function asOneStep(row: Row): Row {
  if (row === IDLE) return row
  const out = made()
  rows.copyWithin(out, row, row + SIZE)
  rows.fill(1, out + STEPS, out + STEPS + KINDS)
  return out
}

/** Cost of entering a loop: dependent reads for its bounds, and steps of searches. */
export interface Entry {
  readonly hops: number
  readonly probes: number
}

/** Repeats a loop body for its trips; `useful` is the share of trips within bounds. */
export function timesAround(loop: For, body: Row, trips: number, useful: number, entry: Entry): Row {
  const order = tripsInOrder(loop, trips)
  const apart =
    (loop.mode.kind === 'serial' || loop.mode.kind === 'unroll') && !isWhole(loop) ? trips * useful : order
  // Sums over threads are put together once, after the loops that reduce.
  const meetings = loop.reduce || loop.mode.kind !== 'serial' ? Math.min(1, trips) : trips
  const whole = Math.ceil(trips)
  const out = made()
  for (let k = 0; k < SIZE; k += KINDS) {
    // As often as `all` where threads wait for each other.
    const isCounted = k === STEPS || k === MISSES
    const mean = isCounted ? trips : k === WAITS ? apart : k >= EXCHANGES ? meetings : order
    const all = isCounted ? whole : mean
    rows[out + k] = rows[body + k]! * mean
    rows[out + k + 1] = rows[body + k + 1]! * all
    rows[out + k + 2] = rows[body + k + 2]! * all
    rows[out + k + 3] = rows[body + k + 3]! * all
  }
  if (entry.hops !== 0) for (let j = HOPS; j < HOPS + KINDS; j++) rows[out + j]! += entry.hops
  if (entry.probes !== 0) for (let j = PROBES; j < PROBES + KINDS; j++) rows[out + j]! += entry.probes
  return out
}
