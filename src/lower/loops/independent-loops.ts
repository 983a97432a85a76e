/**
 * Detection of independent iterations. Invariant reached: a loop is a reduction loop only if its iterations, or those of reduction loops
 * around it, may write the same element. An iterator declared `R` may still visit distinct rows: dense ones, a permutation, or a list
 * without duplicates. Such a loop is marked spatial (`S`).
 */

import { isIndependent } from '../../analysis/dependence/loop-writes.ts'
import { mapSame } from '../../ir/lists.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, stmt, withBodies, withBody } from '../../ir/statements/tree.ts'

export function markIndependentLoops(kernel: Kernel2): Kernel2 {
  // If iterations of an outer loop may conflict, loops inside may conflict too, so they are not visited.
  const go = (body: Body): Body =>
    mapSame(body, (s) => {
      const within = (): readonly Body[] => bodiesOf(s).map(go)
      if (s.kind !== 'for' || !s.reduce) return withBodies(s, within())
      return isIndependent(kernel, s) ? stmt<For>({ ...s, reduce: false, body: within()[0]! }) : s
    })
  const body = go(kernel.body)
  return withBody(kernel, body)
}
