/** What threads do one after the other: on average, in the longest of a warp and of a block, and at most. */
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
  /** Rounds of reads that are under way together, and as many as there are without unrolling. */
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

/** The same while it is added up: a walk makes hundreds, so it is one row of numbers, of each `COUNTED` its `Serial`. */
export type Row = Float64Array

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
export const IDLE: Row = new Float64Array(SIZE)

export const stepsOf = (row: Row): Steps =>
  Object.fromEntries(
    COUNTED.map((name, k) => {
      const [mean, warp, block, most] = row.subarray(KINDS * k, KINDS * (k + 1))
      return [name, { mean, warp, block, most }]
    }),
  ) as unknown as Steps

/** What every thread does alike. */
export function same(counts: Readonly<Record<Counted, number>>): Row {
  const out = new Float64Array(SIZE)
  for (let k = 0; k < COUNTED.length; k++) {
    const n = counts[COUNTED[k]!]
    for (let j = KINDS * k; j < KINDS * (k + 1); j++) out[j] = n
  }
  return out
}

/** One after the other. */
export function both(a: Row, b: Row): Row {
  if (a === IDLE) return b
  if (b === IDLE) return a
  const out = new Float64Array(SIZE)
  for (let k = 0; k < SIZE; k++) out[k] = a[k]! + b[k]!
  return out
}

/** One of two, the first in a share of the cases. */
export function either(share: number, a: Row, b: Row): Row {
  const out = new Float64Array(SIZE)
  for (let k = 0; k < SIZE; k += KINDS) {
    for (let j = k; j < k + 3; j++) out[j] = share * a[j]! + (1 - share) * b[j]!
    out[k + 3] = Math.max(a[k + 3]!, b[k + 3]!)
  }
  return out
}

/** A case among others, of which threads of a warp and of a block wait for the longest. */
export interface Case {
  readonly share: number
  /** How much longer the longest of a warp and of a block are, and the longest of the case. */
  readonly inWarp: number
  readonly inBlock: number
  readonly longest: number
}

export const among = (): Row => new Float64Array(SIZE)

/** Adds a case to `sum`. */
export function addCase(sum: Row, one: Row, { share, inWarp, inBlock, longest }: Case): void {
  for (let k = 0; k < SIZE; k += KINDS) {
    sum[k]! += share * one[k]!
    sum[k + 1]! += share * inWarp * one[k + 1]!
    sum[k + 2]! += share * inBlock * one[k + 2]!
    sum[k + 3] = Math.max(sum[k + 3]!, one[k + 3]! * longest)
  }
}

/** The same with other means of the steps. */
export function withMeanSteps(row: Row, times: number): Row {
  if (times === 1) return row
  const out = row.slice()
  out[STEPS]! *= times
  return out
}

/** What entering a loop costs: reads for its end, and steps of searches. */
export interface Entry {
  readonly hops: number
  readonly probes: number
}

/** A loop's body as often as a thread goes through it; of the trips, a share is `useful`: not beyond the end. */
export function timesAround(loop: For, body: Row, trips: number, useful: number, entry: Entry): Row {
  const order = tripsInOrder(loop, trips)
  const apart =
    (loop.mode.kind === 'serial' || loop.mode.kind === 'unroll') && !isWhole(loop) ? trips * useful : order
  // Sums over threads are put together once, after the loops that reduce.
  const meetings = loop.reduce || loop.mode.kind !== 'serial' ? Math.min(1, trips) : trips
  const whole = Math.ceil(trips)
  const out = new Float64Array(SIZE)
  for (let k = 0; k < SIZE; k += KINDS) {
    // As often as `all` where threads wait for each other.
    const isCounted = k === STEPS || k === MISSES
    const mean = isCounted ? trips : k === WAITS ? apart : k >= EXCHANGES ? meetings : order
    const all = isCounted ? whole : mean
    out[k] = body[k]! * mean
    out[k + 1] = body[k + 1]! * all
    out[k + 2] = body[k + 2]! * all
    out[k + 3] = body[k + 3]! * all
  }
  if (entry.hops !== 0) for (let j = HOPS; j < HOPS + KINDS; j++) out[j]! += entry.hops
  if (entry.probes !== 0) for (let j = PROBES; j < PROBES + KINDS; j++) out[j]! += entry.probes
  return out
}
