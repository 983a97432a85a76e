/** Sums over the statements of a launch. */
import { DTYPE_BYTES } from '../../ir/dtype.ts'
import type { Buffer } from '../../ir/loops.ts'
import type { Spread } from './coalescing.ts'
import type { Operations } from './statement-facts.ts'
import type { LaunchWork, Traffic, Way } from './work.ts'

const NOTHING: Traffic = {
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

/** Of accesses whose address is read. */
export interface Gather {
  /** Number of uses of a loaded value, by a block before near-cache eviction, and by the chip concurrently. */
  readonly reuse: number
  readonly chip: number
  /** Neighbouring threads of a warp that find what they read in one sector. */
  readonly together: number
  /** As of `Traffic`. */
  readonly sweep: number
}

export class Sums {
  readonly #traffic: Record<Way, Map<string, Traffic>> = {
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
    way: Way,
    buffer: Buffer,
    times: number,
    { vector, sectors, fresh, lines, run }: Spread,
    gather: Gather | null = null,
  ): void {
    if (!(times > 0)) return
    const before = this.#traffic[way].get(buffer.name) ?? NOTHING
    const requests = times / vector
    this.#traffic[way].set(buffer.name, {
      elements: before.elements + times,
      requests: before.requests + requests,
      sectors: before.sectors + requests * sectors,
      lines: before.lines + (requests * lines) / (gather?.together ?? 1),
      gathered: before.gathered + (gather ? times : 0),
      runs: before.runs + (gather ? times * run * DTYPE_BYTES[buffer.dtype] : 0),
      fresh: before.fresh + requests * (gather ? sectors / gather.reuse : fresh),
      first: before.first + (gather ? times / gather.reuse : 0),
      firstOfChip: before.firstOfChip + (gather ? times / gather.chip : 0),
      sweep: Math.max(before.sweep, gather?.sweep ?? 0),
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
