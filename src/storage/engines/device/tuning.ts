/** Tuning parameters of columnar operations for each kind of device. */
import type { DeviceKind } from '../../../runtime/device.ts'

export interface Tuning {
  /** Most launches fused into one. */
  fused: number
  /** Most bits of a digit: a chunk has a counter for each value. */
  digit: number
  /** Most bits of a digit for few entries, where launch overhead dominates. */
  digitOfFew: number
  /** Granularity of scans: one thread, or a block, per chunk of elements. */
  scan: { readonly by: 'thread'; readonly length: number } | Tile
  /** Granularity of sorts: one thread, or a block that first sorts the chunk in shared memory, per chunk of entries. */
  chunk: { readonly by: 'thread'; readonly length: number } | Tile
}

export interface Tile {
  readonly by: 'block'
  /** Threads per block, a multiple of 32. */
  readonly threads: number
  /** Entries per thread; an odd number avoids bank conflicts. */
  readonly items: number
}

/**
 * A launch costs a CUDA device as much as a few hundred thousand elements. A single core does not benefit from fusion.
 * WGSL is compiled by drivers of every kind, some of which compile block-level code slowly.
 */
export const TUNINGS: Readonly<Record<DeviceKind, Tuning>> = {
  cpu: {
    fused: 1,
    scan: { by: 'thread', length: 2 ** 20 },
    digit: 8,
    digitOfFew: 8,
    chunk: { by: 'thread', length: 512 },
  },
  cuda: {
    fused: 32,
    scan: { by: 'block', threads: 256, items: 9 },
    digit: 9,
    digitOfFew: 11,
    chunk: { by: 'block', threads: 256, items: 9 },
  },
  webgpu: {
    fused: 1,
    scan: { by: 'thread', length: 16 },
    digit: 7,
    digitOfFew: 7,
    chunk: { by: 'thread', length: 1024 },
  },
}
