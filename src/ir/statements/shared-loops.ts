/**
 * Hash consing of kernels: equal loops of one source become one object, so that steps find memoised results. Formats
 * that differ only in their parameters often have the same loops.
 */

import type { Kernel1 } from '../coordinates/stage1.ts'
import { sameData } from '../expressions/structural-equality.ts'
import { memoize } from '../memoize.ts'
import type { Kernel2 } from './loops.ts'

const loopsOf = memoize((_: Kernel1): Map<string, Kernel2[]> => new Map())
/** Maximum number of loops kept for each source, and for each list of names. */
const MAX_CACHED = 64

/** The loops, or an earlier kernel of the same source that equals them, spans included. */
export function sharedLoops(source: Kernel1, loops: Kernel2): Kernel2 {
  const cache = loopsOf(source)
  const key = [...loops.params, ...loops.buffers].map((x) => x.name).join()
  const candidates = cache.get(key)
  const equal = candidates?.find((k) => sameData(k, loops, true))
  if (equal) return equal
  if (cache.size >= MAX_CACHED || (candidates?.length ?? 0) >= MAX_CACHED) cache.clear()
  cache.set(key, [...(cache.get(key) ?? []), loops])
  return loops
}
