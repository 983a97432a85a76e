/**
 * The primitives on loops. Whatever else has to know of them knows it from here: the language and its errors, traces,
 * JSON, the methods of kernels (which have these comments), and the generators of the tests.
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
  /** Stage I until the first step on loops, Stage II after it. */
  reorder,
  /** The last iteration first. */
  reverse,
  /** Of every `by` iterations in turn, every second lot runs backwards. */
  serpentine,
  tile,
  /** The nest of a loop is done by a declared instruction, by name or as another program has it. */
  tensorize,
  /** `bind({ io: 'block.x', ii: 'thread.x' })`, or pairs where loops are handles. */
  bind,
  /** `{ predicated: true }`: the last round runs whole, and changes nothing beyond the end. */
  unroll,
  vectorize,
  /** `require('d', { multiple: 4 })` or `require('d', { equal: 128 })`: later steps and lowering rely on it. */
  require,
  /** `place`: `shared`, `register`, or a declared memory, by name or as another program has it. */
  cache_read: cacheRead,
  /** Copies into shared memory are made `by - 1` iterations before they are used. */
  pipeline,
  /** So many neighbouring blocks run together, and make copies that each would make alike once for all. */
  cluster,
  /**
   * What neighbouring iterations of a loop combine into one element of the buffer is combined in registers. `within`: the
   * loop over groups of threads that meet in shared memory; `into`: the buffer, and the nest, of what other shares have.
   */
  accumulate,
  cache_write: cacheWrite,
  compute_at: computeAt,
  fission,
  rfactor,
  atomic,
  /** Partial results instead of atomics, added in a fixed order. */
  combine,
  /** Nests on blocks in one launch. */
  merge,
  /** Bodies of nests that follow each other in one loop: `join(['first', 'second'], 'io')`. */
  join,
  /** The loops stay as they are, also where `compile` would choose a schedule. */
  as_written: asWritten,
}

/** Whether a step on loops ends what acts on coordinates: all do that speak of more than sizes. */
export const endsCoordinates = (word: string): boolean =>
  !(LOOP_STEPS as Readonly<Record<string, Pick<Primitive<never>, 'ofSizes'>>>)[word]?.ofSizes
