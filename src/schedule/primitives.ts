/** The primitives on loops, by step. */

import { accumulate } from './loops/accumulate.ts'
import { atomic } from './loops/atomic.ts'
import { bind } from './loops/bind.ts'
import { cacheRead } from './loops/cache-read.ts'
import { cacheWrite } from './loops/cache-write.ts'
import { cluster } from './loops/cluster.ts'
import { combine } from './loops/combine.ts'
import { computeAt } from './loops/compute-at.ts'
import { fission } from './loops/fission.ts'
import { fuse } from './loops/fuse.ts'
import { merge } from './loops/merge.ts'
import { pipeline } from './loops/pipeline.ts'
import { reorder } from './loops/reorder.ts'
import { require } from './loops/require.ts'
import { rfactor } from './loops/rfactor.ts'
import { serpentine } from './loops/serpentine.ts'
import { split } from './loops/split.ts'
import { tensorize } from './loops/tensorize.ts'
import { tile } from './loops/tile.ts'
import { unroll } from './loops/unroll.ts'
import { vectorize } from './loops/vectorize.ts'
import type { Primitive } from './primitive.ts'
import type { LoopStep } from './steps.ts'

export const PRIMITIVES: { readonly [K in LoopStep['kind']]: Primitive<Extract<LoopStep, { kind: K }>> } = {
  split,
  fuse,
  reorder,
  serpentine,
  tile,
  tensorize,
  bind,
  unroll,
  vectorize,
  require,
  cache_read: cacheRead,
  pipeline,
  cluster,
  accumulate,
  cache_write: cacheWrite,
  compute_at: computeAt,
  fission,
  rfactor,
  atomic,
  combine,
  merge,
}
