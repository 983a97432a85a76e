/** How much of what a chip can do a case must take at least. */
import type { Ceilings } from '../../src/run/explain/roofline.ts'

/** The least work of a case: operations, and bytes if every array is moved once. */
export interface Least {
  readonly flops: number
  readonly bytes: number
}

/** Microseconds below which a case cannot be: arrays that fit the cache are read from there. */
export function floor(c: Ceilings, least: Least, type: 'f32' | 'tf32' | 'f16'): number {
  const rate = least.bytes <= c.cacheBytes ? c.cache : c.memory
  return 1e6 * Math.max(least.flops / c[type], least.bytes / rate)
}
