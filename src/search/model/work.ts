/** What a launch is expected to do, summed over its threads. */

/** Of one array of global memory. */
export interface Traffic {
  readonly elements: number
  /** Vector instructions of single threads. */
  readonly requests: number
  /** 32-byte sectors, where neighbouring threads ask together. */
  readonly sectors: number
  /** Elements whose address was itself read, and how many of such lie side by side, summed over the elements. */
  readonly gathered: number
  readonly runs: number
}

export type Way = 'loads' | 'stores' | 'atomics'

/** Of one thread, on average and at most. */
export interface Serial {
  readonly mean: number
  readonly most: number
}

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
  /** Entries of loops that are loops in the text, and their iterations with conditions that are asked on the way. */
  readonly entries: number
  readonly branches: number
  /** Ends of loops over segments of another length than the one before. */
  readonly surprises: number
  /** Accesses to arrays of registers that are more than a processor has, or indexed by a loop. */
  readonly spills: number
  /** Steps of binary searches. */
  readonly searches: number
  /** Values that threads exchange to add them up, times the rounds of it. */
  readonly exchanges: number
  /** Statements of a thread, and waits for memory that follow each other. */
  readonly steps: Serial
  readonly rounds: Serial
}

/** A whole buffer set to one value before anything runs. */
export interface ClearWork {
  readonly bytes: number
}

export interface KernelWork {
  readonly launches: readonly LaunchWork[]
  readonly clears: readonly ClearWork[]
}
