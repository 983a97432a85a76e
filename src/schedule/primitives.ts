/**
 * The table of primitives on loops. The syntax and its errors, traces, JSON, the methods of kernels (which show these
 * comments) and the generators of tests are derived from it.
 */

import { cacheRead } from './loops/caching/cache-read.ts'
import { cacheWrite } from './loops/caching/cache-write.ts'
import { computeAt } from './loops/compute-at/compute-at.ts'
import { computeInline } from './loops/compute-at/compute-inline.ts'
import { bind } from './loops/mapping/bind.ts'
import { cluster } from './loops/mapping/cluster.ts'
import { pipeline } from './loops/mapping/pipeline.ts'
import { tensorize } from './loops/mapping/tensorize.ts'
import { unroll } from './loops/mapping/unroll.ts'
import { vectorize } from './loops/mapping/vectorize.ts'
import { join } from './loops/nests/join.ts'
import { merge } from './loops/nests/merge.ts'
import { asWritten } from './loops/order/as-written.ts'
import { fission } from './loops/order/fission.ts'
import { fuse } from './loops/order/fuse.ts'
import { peel } from './loops/order/peel.ts'
import { reorder } from './loops/order/reorder.ts'
import { require } from './loops/order/require.ts'
import { reverse, serpentine } from './loops/order/serpentine.ts'
import { split } from './loops/order/split.ts'
import { tile } from './loops/order/tile.ts'
import { accumulate } from './loops/reductions/accumulate.ts'
import { atomic } from './loops/reductions/atomic.ts'
import { combine } from './loops/reductions/combine.ts'
import { rfactor } from './loops/reductions/rfactor.ts'
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
  /** Replaces the loads of a buffer by the expression of its elements; the loop nest that writes it disappears. */
  compute_inline: computeInline,
  fission,
  rfactor,
  atomic,
  /** Replaces atomics by partial results, which are added in a fixed order. */
  combine,
  /** Runs loop nests on blocks in one launch. */
  merge,
  /** Runs the bodies of consecutive loop nests in one loop: `join(['first', 'second'], 'io')`. */
  join,
  /** Leaves the loops unchanged, also if `build` would use a default schedule. */
  as_written: asWritten,
}

/** Returns whether steps on coordinates are illegal after this step: after all but steps about sizes. */
export const endsCoordinates = (word: string): boolean =>
  !(LOOP_STEPS as Readonly<Record<string, Pick<Primitive<never>, 'ofSizes'>>>)[word]?.ofSizes
