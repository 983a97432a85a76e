/**
 * Memory of temporaries: a temporary uses the memory of an earlier one of equal type and length that no later step reads
 * (linear-scan allocation over the steps of a plan). A model of n equal layers then needs the temporaries of one layer.
 * Temporaries of integers, such as the lists of formats that are built at run time, are small and keep memory of their own:
 * a launch that writes reused memory cannot overlap the launches that read it.
 */

import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import { accessedBy } from '../../ir/statements/accesses.ts'
import type { Kernel3 } from '../../ir/statements/loops.ts'
import { isFloat } from '../../ir/values/dtype.ts'

/** First and last step that accesses a buffer. */
interface LiveRange {
  readonly first: number
  last: number
}

/** For each temporary in the memory of another one: the temporary that owns the memory. */
export const sharedTemporaries = memoize((plan: Kernel3): ReadonlyMap<string, string> => {
  const ranges = liveRanges(plan)
  const temporaries = plan.buffers.filter((b) => b.role === 'local' && isFloat(b.dtype) && ranges.has(b.name))
  /** Owners of memory by type and length, with the last step that accesses the memory. */
  const owners = new Map<string, { readonly name: string; last: number }[]>()
  const shared = new Map<string, string>()
  for (const b of temporaries.toSorted((a, c) => ranges.get(a.name)!.first - ranges.get(c.name)!.first)) {
    const { first, last } = ranges.get(b.name)!
    const key = `${b.dtype} ${b.shape.map(keyOf).join()}`
    const alike = owners.get(key) ?? []
    const free = alike.find((o) => o.last < first)
    if (free) {
      shared.set(b.name, free.name)
      free.last = last
    } else owners.set(key, [...alike, { name: b.name, last }])
  }
  return shared
})

/** Live ranges of the buffers whose first access is a write; the first value of other buffers comes from outside of the run. */
function liveRanges({ steps }: Kernel3): ReadonlyMap<string, LiveRange> {
  const ranges = new Map<string, LiveRange>()
  const outside = new Set<string>()
  for (const [k, step] of steps.entries()) {
    const { reads, writes } = accessedBy(step)
    for (const name of reads) if (!ranges.has(name)) outside.add(name)
    for (const name of [...reads, ...writes]) {
      const range = ranges.get(name)
      if (range) range.last = k
      else ranges.set(name, { first: k, last: k })
    }
  }
  for (const name of outside) ranges.delete(name)
  return ranges
}
