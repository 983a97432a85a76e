/**
 * Hash consing of kernels: equal loops of one source are one object, by which steps know that they have seen them. Formats
 * that differ in their parameters alone often have the same loops.
 */
import type { Kernel2 } from './loops.ts'
import { remembered } from './remembered.ts'
import type { Kernel1 } from './stage1.ts'
import { sameData } from './structural-equality.ts'

const loopsOf = remembered((_: Kernel1): Map<string, Kernel2[]> => new Map())
/** So many are kept of each source. */
const MOST = 64

/** The loops, or the equal ones that the source had before, spans included. */
export function sharedLoops(source: Kernel1, loops: Kernel2): Kernel2 {
  const known = loopsOf(source)
  const key = [...loops.params, ...loops.buffers].map((x) => x.name).join()
  const alike = known.get(key)
  const same = alike?.find((k) => sameData(k, loops, true))
  if (same) return same
  if (known.size >= MOST || (alike?.length ?? 0) >= MOST) known.clear()
  known.set(key, [...(known.get(key) ?? []), loops])
  return loops
}
