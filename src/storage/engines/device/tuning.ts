/** How columns are worked on by each kind of device. */
import type { DeviceKind } from '../../../runtime/device.ts'

export interface Tuning {
  /** How many launches of one kernel become one at most. */
  fused: number
  /** Bits of a digit at most: a chunk has a counter for each value. */
  digit: number
  /** The same for few entries, where each pass costs its launches. */
  digitOfFew: number
  /** Who adds up a chunk of elements: one thread, or a block. */
  scan: { readonly by: 'thread'; readonly length: number } | Tile
  /** Who counts and deals a chunk of entries: one thread, or a block that orders it in its memory first. */
  chunk: { readonly by: 'thread'; readonly length: number } | Tile
}

/** A chunk of a block. */
export interface Tile {
  readonly by: 'block'
  /** Threads of the block, a multiple of 32. */
  readonly threads: number
  /** Entries of each thread, an odd number: strides over banks of memory have no factor in common with them. */
  readonly items: number
}

/**
 * A launch costs a CUDA device as much as a few hundred thousand elements. One core has nothing to share. WGSL is
 * compiled by drivers of every kind, some of which take long for what a block does in rounds.
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
