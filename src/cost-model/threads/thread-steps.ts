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

/** A `Serial` for each of `COUNTERS` as numbers. */
export type Row = Float64Array

/** Numbers of a `Serial`, and the place of its maximum. */
const KINDS = 4
const MAX = KINDS - 1

/** The counter of each number of a row. */
const COUNTER = COUNTERS.flatMap((name): Counter[] => Array(KINDS).fill(name))

export const zeroRow = (): Row => new Float64Array(KINDS * COUNTERS.length)

/** The row of no work; never written. */
export const IDLE = zeroRow()

export const stepsOf = (row: Row): Steps =>
  Object.fromEntries(
    COUNTERS.map((name, k) => {
      const [mean, warp, block, max] = row.subarray(KINDS * k, KINDS * (k + 1))
      return [name, { mean, warp, block, max }]
    }),
  ) as unknown as Steps

/** A row of counts that are equal in all threads. */
export const uniformRow = (counts: Readonly<Record<Counter, number>>): Row =>
  IDLE.map((_, k) => counts[COUNTER[k]!])

/** The sum of two rows: one after the other. */
export const addRows = (a: Row, b: Row): Row => (a === IDLE ? b : b === IDLE ? a : a.map((x, k) => x + b[k]!))

/** The expectation over two alternatives, the first with probability `share`. */
export const mixRows = (share: number, a: Row, b: Row): Row =>
  a.map((x, k) => (k % KINDS === MAX ? Math.max(x, b[k]!) : share * x + (1 - share) * b[k]!))

/** A case among alternatives; threads of a warp and of a block wait for their longest one. */
interface Case {
  readonly share: number
  /** Ratios of the longest thread in a warp, in a block and in the whole case to the mean. */
  readonly inWarp: number
  readonly inBlock: number
  readonly longest: number
}

export function addCase(sum: Row, added: Row, { share, inWarp, inBlock, longest }: Case): Row {
  const weights = [share, share * inWarp, share * inBlock]
  return sum.map((x, k) =>
    k % KINDS === MAX ? Math.max(x, added[k]! * longest) : x + weights[k % KINDS]! * added[k]!,
  )
}

/** The row with the mean number of steps scaled. */
export const scaleMeanSteps = (row: Row, times: number): Row =>
  times === 1 ? row : row.map((x, k) => (COUNTER[k]! === 'steps' && k % KINDS === 0 ? x * times : x))

/** The row as executed by one instruction: one step. */
export const toOneStep = (row: Row): Row =>
  row === IDLE ? row : row.map((x, k) => (COUNTER[k]! === 'steps' ? 1 : x))

/** Cost of entering a loop: dependent reads for its bounds, and steps of searches. */
interface Entry {
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
  // Threads that wait for each other execute as many trips as the longest.
  const longest = Math.ceil(trips)
  const times: Readonly<Record<Counter, number>> = {
    steps: longest,
    rounds: order,
    waits,
    hops: order,
    probes: order,
    misses: longest,
    exchanges,
    barriers: exchanges,
  }
  return body.map((x, k) => {
    const counter = COUNTER[k]!
    if (counter === 'hops' || counter === 'probes') return x * order + entry[counter]
    const isCounted = counter === 'steps' || counter === 'misses'
    return x * (isCounted && k % KINDS === 0 ? trips : times[counter])
  })
}
