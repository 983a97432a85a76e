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

/** Of one thread. */
export interface Steps {
  /** Executions of statements. */
  readonly steps: Serial
  /** Rounds of reads that are under way together, and as many as there are without unrolling. */
  readonly rounds: Serial
  readonly waits: Serial
  /** Reads that wait for their address. */
  readonly hops: Serial
  /** Steps of searches. */
  readonly probes: Serial
  /** Reads that the near cache has not. */
  readonly misses: Serial
  /** Exchanges of registers with others of the warp, and through shared memory with others of the block. */
  readonly exchanges: Serial
  readonly barriers: Serial
}
export type Counted = keyof Steps

const NONE: Serial = { mean: 0, warp: 0, block: 0, most: 0 }

export const eachOf = (of: (name: Counted) => Serial): Steps => ({
  steps: of('steps'),
  rounds: of('rounds'),
  waits: of('waits'),
  hops: of('hops'),
  probes: of('probes'),
  misses: of('misses'),
  exchanges: of('exchanges'),
  barriers: of('barriers'),
})

export const IDLE: Steps = eachOf(() => NONE)

export const same = (n: number): Serial => ({ mean: n, warp: n, block: n, most: n })

export const both = (a: Steps, b: Steps): Steps =>
  eachOf((k) => ({
    mean: a[k].mean + b[k].mean,
    warp: a[k].warp + b[k].warp,
    block: a[k].block + b[k].block,
    most: a[k].most + b[k].most,
  }))

/** One of two, the first in a share of the cases. */
export const either = (share: number, a: Steps, b: Steps): Steps =>
  eachOf((k) => ({
    mean: share * a[k].mean + (1 - share) * b[k].mean,
    warp: share * a[k].warp + (1 - share) * b[k].warp,
    block: share * a[k].block + (1 - share) * b[k].block,
    most: Math.max(a[k].most, b[k].most),
  }))

/** `mean` times, and as often as `all` where threads wait for each other. */
const repeated = (a: Serial, mean: number, all = mean): Serial => ({
  mean: a.mean * mean,
  warp: a.warp * all,
  block: a.block * all,
  most: a.most * all,
})

/** A loop's body as often as a thread goes through it; of the trips, a share is `useful`: not beyond the end. */
export function timesAround(loop: For, body: Steps, trips: number, useful: number): Steps {
  const order = tripsInOrder(loop, trips)
  const apart =
    (loop.mode.kind === 'serial' || loop.mode.kind === 'unroll') && !isWhole(loop) ? trips * useful : order
  // Sums over threads are put together once, after the loops that reduce.
  const meetings = loop.reduce || loop.mode.kind !== 'serial' ? Math.min(1, trips) : trips
  return eachOf((k) => {
    switch (k) {
      case 'steps':
      case 'misses':
        return repeated(body[k], trips, Math.ceil(trips))
      case 'waits':
        return repeated(body[k], apart)
      case 'exchanges':
      case 'barriers':
        return repeated(body[k], meetings)
      default:
        return repeated(body[k], order)
    }
  })
}
