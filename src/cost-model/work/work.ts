/** Expected work of a launch, summed over its threads. */
import type { Steps } from '../threads/thread-steps.ts'

/** Traffic of one array in global memory. */
export interface Traffic {
  readonly elements: number
  /** Vector instructions of single threads. */
  readonly requests: number
  /** 32-byte sectors; neighbouring threads of a warp share them. */
  readonly sectors: number
  /** Cache lines touched by requests of warps, served one after the other. */
  readonly lines: number
  /**
   * Elements whose address is itself loaded (`gathered`), and the sum over them of the bytes that are contiguous
   * (`runs`).
   */
  readonly gathered: number
  readonly runs: number
  /** Sectors that miss the near cache (L1 of an SM). */
  readonly fresh: number
  /** Gathered elements that a block (`first`), or all concurrent blocks (`firstOfChip`), gather for the first time. */
  readonly first: number
  readonly firstOfChip: number
  /** Bytes from which consecutive blocks gather: the array's part in one tile of the dense dimension. */
  readonly sweep: number
}

export type AccessKind = 'loads' | 'stores' | 'atomics'

export interface LaunchWork {
  readonly blocks: number
  readonly threads: number
  readonly traffic: Readonly<Record<AccessKind, ReadonlyMap<string, Traffic>>>
  /** Bytes of shared memory that are loaded and stored. */
  readonly shared: number
  readonly operations: number
  readonly matrixOperations: number
  /** Operations that are calls of functions such as `exp`. */
  readonly functions: number
  /** Executions of innermost statements. */
  readonly statements: number
  /** Entries of generated loops, and their iterations with evaluated conditions. */
  readonly entries: number
  readonly branches: number
  /** Loop exits after another number of iterations than the previous one. */
  readonly surprises: number
  /** Accesses to register arrays that exceed a processor's registers, or are indexed by a loop variable. */
  readonly spills: number
  /** Steps of binary searches. */
  readonly searches: number
  /** Values exchanged by threads of a warp to combine them, times the number of shuffle steps. */
  readonly exchanges: number
  /** Exchanged values that go through shared memory. */
  readonly passed: number
  /**
   * Contention of atomic updates. `conflicts`: waits of threads of a warp that update one element in the same
   * instruction. `contention`: updates of the most frequent element. `retries`: these, times the warps that update it
   * concurrently.
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
