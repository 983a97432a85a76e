/**
 * Loops that need not combine. Invariant reached: a loop is a reduction loop only where its iterations, or those of reduction
 * loops around, may meet in an element. An iterator that is declared `R` may name rows that differ all the same: dense ones,
 * those of a permutation, a list without repeats; they are then written as those of `S` are.
 */

import { isIndependent } from '../analysis/loop-writes.ts'
import { mapSame } from '../ir/lists.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { type Body, bodiesOf, stmt, withBodies } from '../ir/tree.ts'

export function markIndependentLoops(kernel: Kernel2): Kernel2 {
  // Where an iteration of a loop around may meet others, so may those inside, whatever they write.
  const go = (body: Body): Body =>
    mapSame(body, (s) => {
      const within = (): readonly Body[] => bodiesOf(s).map(go)
      if (s.kind !== 'for' || !s.reduce) return withBodies(s, within())
      return isIndependent(kernel, s) ? stmt<For>({ ...s, reduce: false, body: within()[0]! }) : s
    })
  const body = go(kernel.body)
  return body === kernel.body ? kernel : { ...kernel, body }
}
