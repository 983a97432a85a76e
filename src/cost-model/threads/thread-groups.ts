/**
 * Threads of a warp and of a block: the number of different values that variables have in them, and the longest of
 * their segments.
 */
import { AXES_OF_BLOCK } from '../../ir/instructions/hardware-axes.ts'
import { type Lane, WARP } from '../work/coalescing.ts'

/**
 * Number of different values of `vars` in a warp and in a block. Threads are numbered along x, then y, then z; a warp
 * is 32 consecutive ones.
 */
export function distinctValues(
  lanes: readonly Lane[],
  vars: ReadonlySet<string>,
): { readonly warp: number; readonly block: number } {
  let [free, warp, block] = [WARP, 1, 1]
  for (const axis of AXES_OF_BLOCK)
    for (const l of lanes) {
      if (l.axis !== axis) continue
      const n = Math.max(1, Math.round(l.extent))
      const inWarp = Math.min(free, n)
      free = Math.max(1, Math.floor(free / inWarp))
      if (!vars.has(l.variable)) continue
      block *= n
      warp *= inWarp
    }
  return { warp, block }
}

/**
 * Expected length of the longest of this many neighbouring segments, relative to the mean length.
 * @param longest - By k, the longest of 2^k neighbouring segments, mean over all such groups
 */
export function longestOverMean(longest: readonly number[] | undefined, neighbours: number): number {
  const mean = longest?.[0] ?? 0
  if (!longest || mean === 0) return 1
  const power = Math.min(longest.length - 1, Math.log2(Math.max(1, neighbours)))
  const [low, high] = [Math.floor(power), Math.ceil(power)]
  return (longest[low]! + (longest[high]! - longest[low]!) * (power - low)) / mean
}
