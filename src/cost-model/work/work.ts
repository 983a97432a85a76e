/** Expected work of a launch, summed over its threads. */

import type { Expr, Load, Search } from '../../ir/expressions/expr.ts'
import { children, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { For, If, Reduce, Store } from '../../ir/statements/loops.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { combining, operationsIn } from '../../run/explain/work-counters.ts'
import type { Steps } from '../threads/thread-steps.ts'
import { accessKey, collectSegments, type Segment } from './estimates.ts'

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
interface ClearWork {
  readonly bytes: number
}

export interface KernelWork {
  readonly launches: readonly LaunchWork[]
  readonly clears: readonly ClearWork[]
}

// Reads, operations and dependencies of statements, memoised.

/** Distinct loads and searches of a statement's expressions. */
export const readsOf = memoize((s: Store | Reduce): readonly (Load | Search)[] => {
  const reads = new Map<string, Load | Search>()
  const collect = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'load' || x.kind === 'search') reads.set(accessKey(x), x)
    })
  if (s.kind === 'store') for (const e of [...s.index, s.value]) collect(e)
  else for (const e of [...s.targets.flatMap((t) => t.index), ...s.values]) collect(e)
  return [...reads.values()]
})

/** Operations of one execution of a statement. */
export interface Operations {
  /** Number of operations of floats, those of functions included. */
  readonly n: number
  /** Number of calls of functions such as `exp`. */
  readonly functions: number
}

export const operationsOf = memoize((s: Store | Reduce): Operations => {
  const values = s.kind === 'store' ? [s.value] : s.values
  const functions = (e: Expr): number =>
    (e.kind === 'call' && isFloat(e.dtype) ? 1 : 0) + children(e).reduce((n, x) => n + functions(x), 0)
  return {
    n: values.reduce((n, v) => n + operationsIn(v), 0) + (s.kind === 'store' ? 0 : combining(s)),
    functions: values.reduce((n, v) => n + functions(v), 0),
  }
})

/** Segments on whose lengths the extent or conditions of a statement depend. */
export const segmentsOf = memoize((s: For | If): readonly Segment[] => {
  const exprs = s.kind === 'for' ? [s.extent, ...s.guards] : [s.cond]
  return [...new Map(exprs.flatMap(collectSegments).map((x) => [x.key, x])).values()]
})
