/**
 * The table of primitives on loops. The syntax and its errors, traces, JSON, the methods of kernels (which show these
 * comments) and the generators of tests are derived from it.
 */
import { accumulate } from './loops/accumulate.ts'
import { asWritten } from './loops/as-written.ts'
import { atomic } from './loops/atomic.ts'
import { bind } from './loops/bind.ts'
import { cacheRead } from './loops/cache-read.ts'
import { cacheWrite } from './loops/cache-write.ts'
import { cluster } from './loops/cluster.ts'
import { combine } from './loops/combine.ts'
import { computeAt } from './loops/compute-at.ts'
import { fission } from './loops/fission.ts'
import { fuse } from './loops/fuse.ts'
import { join } from './loops/join.ts'
import { merge } from './loops/merge.ts'
import { peel } from './loops/peel.ts'
import { pipeline } from './loops/pipeline.ts'
import { reorder } from './loops/reorder.ts'
import { require } from './loops/require.ts'
import { reverse } from './loops/reverse.ts'
import { rfactor } from './loops/rfactor.ts'
import { serpentine } from './loops/serpentine.ts'
import { split } from './loops/split.ts'
import { tensorize } from './loops/tensorize.ts'
import { tile } from './loops/tile.ts'
import { unroll } from './loops/unroll.ts'
import { vectorize } from './loops/vectorize.ts'
import type { Primitive } from './primitive.ts'

export const LOOP_STEPS = {
  split,
  peel,
  fuse,
  /** Acts on Stage I until the first step on loops, and on Stage II after it. */
  reorder,
  /** Runs the last iteration first. */
  reverse,
  /** Runs every second lot of `by` iterations backwards. */
  serpentine,
  tile,
  /** Replaces the loop nest by a declared instruction, given by name or as an `Instr` of another program. */
  tensorize,
  /** Binds loops to thread axes: `bind({ io: 'block.x', ii: 'thread.x' })`, or pairs if loops are handles. */
  bind,
  /**
   * Unrolls a loop. With `{ predicated: true }`, the last iteration is complete, and changes nothing beyond the end.
   */
  unroll,
  vectorize,
  /**
   * Restricts sizes: `require('d', { multiple: 4 })` or `require('d', { equal: 128 })`. Later steps and lowering rely
   * on it.
   */
  require,
  /**
   * Caches reads in `place`: `shared`, `register`, or a declared memory, by name or as a `Memory` of another program.
   */
  cache_read: cacheRead,
  /** Makes copies into shared memory `by - 1` iterations before their use. */
  pipeline,
  /** Runs `by` neighbouring blocks together as a cluster; copies that all of them need are made once. */
  cluster,
  /**
   * Combines values of consecutive iterations for one element in registers. `within`: the loop over the chunks that a
   * block combines in shared memory; `into`: a new buffer, and a loop nest, for values of other chunks.
   */
  accumulate,
  cache_write: cacheWrite,
  compute_at: computeAt,
  fission,
  rfactor,
  atomic,
  /** Replaces atomics by partial results, which are added in a fixed order. */
  combine,
  /** Runs loop nests on blocks in one launch. */
  merge,
  /** Runs the bodies of consecutive loop nests in one loop: `join(['first', 'second'], 'io')`. */
  join,
  /** Leaves the loops unchanged, also if `compile` would use a default schedule. */
  as_written: asWritten,
}

/**
 * Returns whether steps on coordinates are illegal after this step on loops: after all steps except steps about sizes.
 */
export const endsCoordinates = (word: string): boolean =>
  !(LOOP_STEPS as Readonly<Record<string, Pick<Primitive<never>, 'ofSizes'>>>)[word]?.ofSizes
