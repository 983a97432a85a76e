/** Threads of a warp and of a block: how many different values of some variables they have, and how long the longest takes. */
import { AXES_OF_BLOCK } from '../../ir/hardware-axes.ts'
import { type Lane, WARP } from './coalescing.ts'

/** Threads are numbered along x, then y, then z; warps are 32 that follow each other. */
export function groupsOf(
  lanes: readonly Lane[],
  vars: ReadonlySet<string>,
): { readonly warp: number; readonly block: number } {
  let [left, warp, block] = [WARP, 1, 1]
  for (const axis of AXES_OF_BLOCK)
    for (const l of lanes) {
      if (l.axis !== axis) continue
      const n = Math.max(1, Math.round(l.extent))
      const inWarp = Math.min(left, n)
      left = Math.max(1, Math.floor(left / inWarp))
      if (!vars.has(l.variable)) continue
      block *= n
      warp *= inWarp
    }
  return { warp, block }
}

/**
 * Longest of this many neighbouring segments, relative to the mean. @param longest - mean over all groups of 2^k neighbours,
 * by k
 */
export function waitingFor(longest: readonly number[] | undefined, neighbours: number): number {
  const mean = longest?.[0] ?? 0
  if (!longest || mean === 0) return 1
  const power = Math.min(longest.length - 1, Math.log2(Math.max(1, neighbours)))
  const [low, high] = [Math.floor(power), Math.ceil(power)]
  return (longest[low]! + (longest[high]! - longest[low]!) * (power - low)) / mean
}
