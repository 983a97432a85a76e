/** Sums of work over the statements of a launch. */

import type { Buffer } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import type { Transactions } from './coalescing.ts'
import type { AccessKind, LaunchWork, Operations, Traffic } from './work.ts'

const NO_TRAFFIC: Traffic = {
  elements: 0,
  requests: 0,
  sectors: 0,
  lines: 0,
  gathered: 0,
  runs: 0,
  fresh: 0,
  first: 0,
  firstOfChip: 0,
  sweep: 0,
}

/** Cache reuse of accesses whose address is loaded. */
export interface Gather {
  /**
   * Number of uses of a loaded value by a block before it is evicted from the near cache (`reuse`), and by all
   * concurrent blocks (`chipReuse`).
   */
  readonly reuse: number
  readonly chipReuse: number
  /** Threads of a warp whose gathered values share one sector. */
  readonly threadsPerSector: number
  /** As in `Traffic`. */
  readonly sweep: number
}

export class LaunchSums {
  readonly #traffic: Record<AccessKind, Map<string, Traffic>> = {
    loads: new Map(),
    stores: new Map(),
    atomics: new Map(),
  }
  #operations = 0
  #matrix = 0
  #statements = 0
  #functions = 0
  entries = 0
  branches = 0
  surprises = 0
  spills = 0
  shared = 0
  searches = 0
  exchanges = 0
  passed = 0
  conflicts = 0
  contention = 0
  retries = 0

  statement(times: number, { n, functions }: Operations, matrix: boolean): void {
    this.#statements += times
    this.#functions += functions * times
    const operations = n * times
    if (matrix) this.#matrix += operations
    else this.#operations += operations
  }

  access(
    kind: AccessKind,
    buffer: Buffer,
    times: number,
    { vector, sectors, fresh, lines, run }: Transactions,
    gather: Gather | null = null,
  ): void {
    if (!(times > 0)) return
    const previous = this.#traffic[kind].get(buffer.name) ?? NO_TRAFFIC
    const requests = times / vector
    this.#traffic[kind].set(buffer.name, {
      elements: previous.elements + times,
      requests: previous.requests + requests,
      sectors: previous.sectors + requests * sectors,
      lines: previous.lines + (requests * lines) / (gather?.threadsPerSector ?? 1),
      gathered: previous.gathered + (gather ? times : 0),
      runs: previous.runs + (gather ? times * run * DTYPE_BYTES[buffer.dtype] : 0),
      fresh: previous.fresh + requests * (gather ? sectors / gather.reuse : fresh),
      first: previous.first + (gather ? times / gather.reuse : 0),
      firstOfChip: previous.firstOfChip + (gather ? times / gather.chipReuse : 0),
      sweep: Math.max(previous.sweep, gather?.sweep ?? 0),
    })
  }

  result(): Omit<LaunchWork, 'blocks' | 'threads' | 'serial'> {
    return {
      traffic: this.#traffic,
      operations: this.#operations,
      matrixOperations: this.#matrix,
      statements: this.#statements,
      functions: this.#functions,
      entries: this.entries,
      branches: this.branches,
      surprises: this.surprises,
      spills: this.spills,
      shared: this.shared,
      searches: this.searches,
      exchanges: this.exchanges,
      contention: this.contention,
      retries: this.retries,
      conflicts: this.conflicts,
      passed: this.passed,
    }
  }
}
