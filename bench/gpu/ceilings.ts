/** What a chip can do at most, and how much of it a case must take at least. */

export interface Ceilings {
  /** Bytes a second from device memory, and from the L2 cache. */
  readonly memory: number
  readonly cache: number
  readonly cacheBytes: number
  /** Operations a second: f32 units, f16 tensor cores as the vendor's library reaches them at 4096³. */
  readonly f32: number
  readonly f16: number
}

/** Measured on the chip, by name. */
const CHIPS: readonly (readonly [RegExp, Ceilings])[] = [
  [/H200/, { memory: 4.47e12, cache: 8.4e12, cacheBytes: 60e6, f32: 65e12, f16: 645e12 }],
]

export const ceilingsOf = (chip: string): Ceilings | undefined => CHIPS.find(([name]) => name.test(chip))?.[1]

/** The least work of a case: operations, and bytes if every array is moved once. */
export interface Least {
  readonly flops: number
  readonly bytes: number
}

/** Microseconds below which a case cannot be: arrays that fit the cache are read from there. */
export function floor(c: Ceilings, least: Least, type: 'f32' | 'f16'): number {
  const rate = least.bytes <= c.cacheBytes ? c.cache : c.memory
  return 1e6 * Math.max(least.flops / c[type], least.bytes / rate)
}
