/** Serial work of threads: on average, in the longest thread of a warp and of a block, and at most. */
import type { For } from '../../ir/statements/loops.ts'
import { isExpanded } from '../work/coalescing.ts'
import { serialTrips } from '../work/place.ts'

/** A count of serial work, in threads. */
export interface Serial {
  readonly mean: number
  /** In the longest thread of a warp, and of a block, each averaged over the warps or blocks. */
  readonly warp: number
  readonly block: number
  readonly max: number
}

const COUNTERS = [
  /** Executions of statements. */
  'steps',
  /** Rounds of loads in flight together, and their number without unrolling. */
  'rounds',
  'waits',
  /** Loads whose address is itself loaded. */
  'hops',
  /** Steps of searches. */
  'probes',
  /** Misses of the near cache. */
  'misses',
  /** Exchanges of registers within the warp, and through shared memory within the block. */
  'exchanges',
  'barriers',
] as const
type Counter = (typeof COUNTERS)[number]

export type Steps = Readonly<Record<Counter, Serial>>

/** A row of numbers with a `Serial` for each of `COUNTERS`, as its offset in an array that all rows share. */
export type Row = number

const KINDS = 4
const SIZE = KINDS * COUNTERS.length
const offsetOf = (name: Counter): number => KINDS * COUNTERS.indexOf(name)
const [STEPS, WAITS, HOPS, PROBES, MISSES, EXCHANGES] = [
  offsetOf('steps'),
  offsetOf('waits'),
  offsetOf('hops'),
  offsetOf('probes'),
  offsetOf('misses'),
  offsetOf('exchanges'),
]

/** The row of no work; never written. */
export const IDLE: Row = 0

let rows = new Float64Array(256 * SIZE)
let end = SIZE

/** Invalidates all rows, at the start of a walk. */
export function forgetRows(): void {
  end = SIZE
}

/** Allocates a row with undefined contents. */
function allocateRow(): Row {
  const row = end
  end += SIZE
  if (end <= rows.length) return row
  const larger = new Float64Array(2 * rows.length)
  larger.set(rows)
  rows = larger
  return row
}

export const stepsOf = (row: Row): Steps =>
  Object.fromEntries(
    COUNTERS.map((name, k) => {
      const [mean, warp, block, max] = rows.subarray(row + KINDS * k, row + KINDS * (k + 1))
      return [name, { mean, warp, block, max }]
    }),
  ) as unknown as Steps

/** A row of counts that are equal in all threads. */
export function uniformRow(counts: Readonly<Record<Counter, number>>): Row {
  const row = allocateRow()
  for (let k = 0; k < COUNTERS.length; k++)
    rows.fill(counts[COUNTERS[k]!], row + KINDS * k, row + KINDS * (k + 1))
  return row
}

/** The sum of two rows: one after the other. */
export function addRows(a: Row, b: Row): Row {
  if (a === IDLE) return b
  if (b === IDLE) return a
  const row = allocateRow()
  for (let k = 0; k < SIZE; k++) rows[row + k] = rows[a + k]! + rows[b + k]!
  return row
}

/** The expectation over two alternatives, the first with probability `share`. */
export function mixRows(share: number, a: Row, b: Row): Row {
  const row = allocateRow()
  for (let k = 0; k < SIZE; k += KINDS) {
    for (let j = k; j < k + 3; j++) rows[row + j] = share * rows[a + j]! + (1 - share) * rows[b + j]!
    rows[row + k + 3] = Math.max(rows[a + k + 3]!, rows[b + k + 3]!)
  }
  return row
}

/** A case among alternatives; threads of a warp and of a block wait for their longest one. */
export interface Case {
  readonly share: number
  /** Ratios of the longest thread in a warp, in a block and in the whole case to the mean. */
  readonly inWarp: number
  readonly inBlock: number
  readonly longest: number
}

/** A row of zeros, to which cases are added. */
export function zeroRow(): Row {
  const row = allocateRow()
  rows.fill(0, row, row + SIZE)
  return row
}

export function addCase(sum: Row, added: Row, { share, inWarp, inBlock, longest }: Case): void {
  for (let k = 0; k < SIZE; k += KINDS) {
    rows[sum + k]! += share * rows[added + k]!
    rows[sum + k + 1]! += share * inWarp * rows[added + k + 1]!
    rows[sum + k + 2]! += share * inBlock * rows[added + k + 2]!
    rows[sum + k + 3] = Math.max(rows[sum + k + 3]!, rows[added + k + 3]! * longest)
  }
}

/** The row with the mean number of steps scaled. */
export function scaleMeanSteps(source: Row, times: number): Row {
  if (times === 1) return source
  const row = allocateRow()
  rows.copyWithin(row, source, source + SIZE)
  rows[row + STEPS]! *= times
  return row
}

/** The row as executed by one instruction: one step. */
export function toOneStep(source: Row): Row {
  if (source === IDLE) return source
  const row = allocateRow()
  rows.copyWithin(row, source, source + SIZE)
  rows.fill(1, row + STEPS, row + STEPS + KINDS)
  return row
}

/** Cost of entering a loop: dependent reads for its bounds, and steps of searches. */
export interface Entry {
  readonly hops: number
  readonly probes: number
}

/** Repeats a loop body for its trips; `useful` is the share of trips within bounds. */
export function repeatRow(loop: For, body: Row, trips: number, useful: number, entry: Entry): Row {
  const order = serialTrips(loop, trips)
  const waits =
    (loop.mode.kind === 'serial' || loop.mode.kind === 'unroll') && !isExpanded(loop) ? trips * useful : order
  // Reductions across threads are combined once, after the reduction loops.
  const exchanges = loop.reduce || loop.mode.kind !== 'serial' ? Math.min(1, trips) : trips
  const maxTrips = Math.ceil(trips)
  const row = allocateRow()
  for (let k = 0; k < SIZE; k += KINDS) {
    // Threads that wait for each other execute as many trips as the longest, `longestTrips`.
    const isCounted = k === STEPS || k === MISSES
    const mean = isCounted ? trips : k === WAITS ? waits : k >= EXCHANGES ? exchanges : order
    const longestTrips = isCounted ? maxTrips : mean
    rows[row + k] = rows[body + k]! * mean
    rows[row + k + 1] = rows[body + k + 1]! * longestTrips
    rows[row + k + 2] = rows[body + k + 2]! * longestTrips
    rows[row + k + 3] = rows[body + k + 3]! * longestTrips
  }
  if (entry.hops !== 0) for (let j = HOPS; j < HOPS + KINDS; j++) rows[row + j]! += entry.hops
  if (entry.probes !== 0) for (let j = PROBES; j < PROBES + KINDS; j++) rows[row + j]! += entry.probes
  return row
}
