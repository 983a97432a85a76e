/** Expected work of a launch, summed over its threads. */
import type { Steps } from './thread-steps.ts'

/** Of one array of global memory. */
export interface Traffic {
  readonly elements: number
  /** Vector instructions of single threads. */
  readonly requests: number
  /** 32-byte sectors, where neighbouring threads ask together. */
  readonly sectors: number
  /** Cache lines that requests of warps touch, one after the other. */
  readonly lines: number
  /** Elements whose address was itself read, and how many of such lie side by side, summed over the elements. */
  readonly gathered: number
  readonly runs: number
  /** Sectors that the near cache, that of a multiprocessor, has not. */
  readonly fresh: number
  /** Gathered elements that a block, or the chip concurrently, gathers for the first time. */
  readonly first: number
  readonly firstOfChip: number
  /** Bytes that blocks which follow each other gather from: the array's part in one tile of what is dense. */
  readonly sweep: number
}

export type Way = 'loads' | 'stores' | 'atomics'

export interface LaunchWork {
  readonly blocks: number
  readonly threads: number
  readonly traffic: Readonly<Record<Way, ReadonlyMap<string, Traffic>>>
  /** Bytes. */
  readonly shared: number
  readonly operations: number
  readonly matrixOperations: number
  /** Of the operations, functions such as `exp`. */
  readonly functions: number
  /** Executions of innermost statements. */
  readonly statements: number
  /** Entries of generated loops, and their iterations with evaluated conditions. */
  readonly entries: number
  readonly branches: number
  /** Ends of loops over segments of another length than the one before. */
  readonly surprises: number
  /** Accesses to arrays of registers that are more than a processor has, or indexed by a loop. */
  readonly spills: number
  /** Steps of binary searches. */
  readonly searches: number
  /** Values that threads of a warp exchange to add them up, times the rounds of it. */
  readonly exchanges: number
  /** Exchanged values that go through shared memory. */
  readonly passed: number
  /**
   * Atomic updates that threads of a warp make of one element at once, for each those that are before it; updates of the
   * element that has most; and these times the warps that update it at one time.
   */
  readonly conflicts: number
  readonly contention: number
  readonly retries: number
  readonly serial: Steps
}

/** A whole buffer set to one value before anything runs. */
export interface ClearWork {
  readonly bytes: number
}

export interface KernelWork {
  readonly launches: readonly LaunchWork[]
  readonly clears: readonly ClearWork[]
}
