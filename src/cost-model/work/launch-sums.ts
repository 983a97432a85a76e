/** Expected work of a launch, summed over its statements and threads. */

import type { Buffer } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import type { Steps } from '../threads/thread-steps.ts'
import type { Transactions } from './coalescing.ts'

const NO_TRAFFIC = {
  elements: 0,
  /** Vector instructions of single threads. */
  requests: 0,
  /** 32-byte sectors; neighbouring threads of a warp share them. */
  sectors: 0,
  /** Cache lines touched by requests of warps, served one after the other. */
  lines: 0,
  /** Elements whose address is itself loaded, and the sum over them of the bytes that are contiguous (`runs`). */
  gathered: 0,
  runs: 0,
  /** Sectors that miss the near cache (L1 of an SM). */
  fresh: 0,
  /** Gathered elements that a block (`first`), or all concurrent blocks (`firstOfChip`), gather for the first time. */
  first: 0,
  firstOfChip: 0,
  /** Bytes from which consecutive blocks gather: the array's part in one tile of the dense dimension. */
  sweep: 0,
}

/** Traffic of one array in global memory. */
export type Traffic = Readonly<typeof NO_TRAFFIC>

export type AccessKind = 'loads' | 'stores' | 'atomics'

/** Cache reuse of accesses whose address is loaded. */
export interface Gather extends Pick<Traffic, 'sweep'> {
  /** Uses of a loaded value by a block before its eviction from the near cache, and by all concurrent blocks. */
  readonly reuse: number
  readonly chipReuse: number
  /** Threads of a warp whose gathered values share one sector. */
  readonly threadsPerSector: number
}

export class LaunchSums {
  readonly traffic: Readonly<Record<AccessKind, Map<string, typeof NO_TRAFFIC>>> = {
    loads: new Map(),
    stores: new Map(),
    atomics: new Map(),
  }
  operations = 0
  matrixOperations = 0
  /** Operations that are calls of functions such as `exp`. */
  functions = 0
  statements = 0
  /** Entries of generated loops, and their iterations with evaluated conditions. */
  entries = 0
  branches = 0
  /** Loop exits after another number of iterations than the previous one. */
  surprises = 0
  /** Accesses to register arrays that exceed a processor's registers, or are indexed by a loop variable. */
  spills = 0
  /** Bytes of shared memory that are loaded and stored. */
  shared = 0
  searches = 0
  /** Values exchanged by threads of a warp to combine them, times the number of shuffle steps. */
  exchanges = 0
  /** Exchanged values that go through shared memory. */
  passed = 0
  /**
   * Contention of atomic updates. `conflicts`: waits of threads of a warp that update one element in the same
   * instruction. `contention`: updates of the most frequent element. `retries`: these, times the warps that update it
   * concurrently.
   */
  conflicts = 0
  contention = 0
  retries = 0

  access(
    kind: AccessKind,
    buffer: Buffer,
    times: number,
    { vector, sectors, fresh, lines, run }: Transactions,
    gather: Gather | null = null,
  ): void {
    if (!(times > 0)) return
    const sum = this.traffic[kind].get(buffer.name) ?? { ...NO_TRAFFIC }
    this.traffic[kind].set(buffer.name, sum)
    const requests = times / vector
    sum.elements += times
    sum.requests += requests
    sum.sectors += requests * sectors
    sum.lines += (requests * lines) / (gather?.threadsPerSector ?? 1)
    sum.fresh += requests * (gather ? sectors / gather.reuse : fresh)
    if (!gather) return
    sum.gathered += times
    sum.runs += times * run * DTYPE_BYTES[buffer.dtype]
    sum.first += times / gather.reuse
    sum.firstOfChip += times / gather.chipReuse
    sum.sweep = Math.max(sum.sweep, gather.sweep)
  }
}

export interface LaunchWork extends Readonly<Omit<LaunchSums, 'access'>> {
  readonly blocks: number
  readonly threads: number
  readonly serial: Steps
}

export interface KernelWork {
  readonly launches: readonly LaunchWork[]
  /** Whole buffers set to one value before anything runs. */
  readonly clears: readonly { readonly bytes: number }[]
}
