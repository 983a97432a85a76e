/**
 * Zero-trip loop versioning. Invariant reached: if the trip count of a pipelined loop is loaded (the length of a row), a block tests first
 * whether it is 0. An empty row runs only the statements around the loop: no barriers, no copies, and sums that are constants, which
 * compilers fold.
 * The trip count is uniform in a block, so barriers remain legal. Tiles in shared memory are shared by both versions.
 */

import { int, lt } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsMemory, readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { specialiseNests } from './specialise.ts'

export const versionEmptyLoops = (kernel: Kernel2): Kernel2 =>
  specialiseNests(kernel, (list, { path: [nest] }) => {
    const decisiveLoops = nest ? list.map((s) => decisive(s, uniformIn(nest))) : []
    const from = decisiveLoops.findIndex((l) => l)
    if (from < 0) return undefined
    const { extent } = decisiveLoops[from]!
    const others = loopsOf(list.slice(from)).filter((l) => keyOf(l.extent) !== keyOf(extent))
    if (others.some(isPipelined)) return undefined
    return { from, to: list.length, when: lt(int(0), extent), sharesBuffers: true }
  })

/** A pipeline that continues into the next outer iteration has copies in flight even if its loop does not run. */
const isPipelined = ({ mode }: For): boolean => mode.kind === 'pipeline' && !mode.continued

/**
 * Returns a predicate for loops whose trip count is the same for all threads and does not change in the nest; of no loop if the nest has no
 * pipelined loops, or if the blocks of a cluster must run the same shared copies.
 */
const uniformIn = memoize((nest: For): ((l: For) => boolean) => {
  const loops = loopsOf([nest])
  if (!loops.some(isPipelined) || loops.some((l) => l.mode.kind === 'bind' && l.mode.cluster))
    return () => false
  const threads = new Set(loops.flatMap((l) => (boundIndex(l, 'thread') ? [l.var] : [])))
  const changed = new Set([...writesOf([nest]), ...allocatedNames([nest])])
  return ({ extent }) => !mentionsSome(extent, threads) && !readsSome(extent, changed)
})

/** Returns the pipelined loop in `s` that all threads of a block reach equally often and whose trip count is loaded and uniform. */
function decisive(s: Stmt, isUniform: (l: For) => boolean): For | undefined {
  if (s.kind !== 'for') return undefined
  if (boundIndex(s, 'thread'))
    return s.guards.length > 0 ? undefined : s.body.map((x) => decisive(x, isUniform)).find((l) => l)
  return isPipelined(s) && isUniform(s) && readsMemory(s.extent) ? s : undefined
}
