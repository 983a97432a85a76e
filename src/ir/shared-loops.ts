/**
 * Hash consing of kernels: equal loops of one source become one object, so that steps find memoised results. Formats
 * that differ only in their parameters often have the same loops.
 */
import type { Kernel2 } from './loops.ts'
import { remembered } from './remembered.ts'
import type { Kernel1 } from './stage1.ts'
import { sameData } from './structural-equality.ts'

const loopsOf = remembered((_: Kernel1): Map<string, Kernel2[]> => new Map())
/** Most loops kept for each source, and for each list of names. */
const MOST = 64

/** The loops, or an earlier kernel of the same source that equals them, spans included. */
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
