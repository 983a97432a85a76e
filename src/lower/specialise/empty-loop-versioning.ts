/**
 * Zero-trip loop versioning. Invariant reached: if the trip count of a pipelined loop is loaded (the length of a row), a block tests first
 * whether it is 0. An empty row runs only the statements around the loop: no barriers, no copies, and sums that are constants, which
 * compilers fold.
 * The trip count is uniform in a block, so barriers remain legal. Tiles in shared memory are shared by both versions.
 */

import { unrolledSize } from '../../analysis/loops/segmented-loops.ts'
import { MAX_UNROLLED } from '../../ir/code-size-budgets.ts'
import { namesOf } from '../../ir/expressions/bound-names.ts'
import { int, lt } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsMemory, readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { mapSame } from '../../ir/lists.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, mapBodies, rewriteStmts, withBody } from '../../ir/statements/tree.ts'

export function versionEmptyLoops(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (nest) => {
    const loops = loopsOf([nest])
    // The blocks of a cluster must run the same shared copies.
    if (!loops.some(isPipelined) || loops.some((l) => l.mode.kind === 'bind' && l.mode.cluster)) return nest
    const size = unrolledSize([nest])
    const isUniform = uniformIn(nest, loops)
    /** Versions the rest of the list from its first decisive loop on. If it has none, or is too large, versions nested lists. */
    const visit = (list: Body): Body => {
      const at = list.findIndex((s) => decisive(s, isUniform))
      if (at >= 0) {
        const { extent } = decisive(list[at]!, isUniform)!
        const shared = list.slice(at).filter((s) => s.kind === 'alloc')
        const then = list.slice(at).filter((s) => s.kind !== 'alloc')
        const otherwise = copyStatements(without(then, keyOf(extent)), names)
        const again = allocatedNames(otherwise, 'shared').size > 0 || loopsOf(otherwise).some(isPipelined)
        if (!again && size + unrolledSize(otherwise) <= MAX_UNROLLED)
          return [...list.slice(0, at), ...shared, when(lt(int(0), extent), then, otherwise)]
      }
      return mapSame(list, (s) => mapBodies(s, visit))
    }
    return mapBodies(nest, visit)
  })
  return withBody(kernel, body)
}

/** A pipeline that continues into the next outer iteration has copies in flight even if its loop does not run. */
const isPipelined = ({ mode }: For): boolean => mode.kind === 'pipeline' && !mode.continued

/** Returns a predicate for loops whose trip count is the same for all threads and does not change in the nest. */
function uniformIn(nest: Stmt, loops: readonly For[]): (l: For) => boolean {
  const threads = new Set(loops.flatMap((l) => (boundIndex(l, 'thread') ? [l.var] : [])))
  const changed = new Set([...writesOf([nest]), ...allocatedNames([nest])])
  return ({ extent }) => !mentionsSome(extent, threads) && !readsSome(extent, changed)
}

/** Returns the pipelined loop in `s` that all threads of a block reach equally often and whose trip count is loaded and uniform. */
function decisive(s: Stmt, isUniform: (l: For) => boolean): For | undefined {
  if (s.kind !== 'for') return undefined
  if (boundIndex(s, 'thread'))
    return s.guards.length > 0 ? undefined : s.body.map((x) => decisive(x, isUniform)).find((l) => l)
  return isPipelined(s) && isUniform(s) && readsMemory(s.extent) ? s : undefined
}

/** Removes the pipelined loops with this extent, and statements that become empty. */
const without = (body: Body, extent: string): Body =>
  rewriteStmts(body, {
    stmt: (s) => {
      const bodies = bodiesOf(s)
      const gone = s.kind === 'for' && isPipelined(s) && keyOf(s.extent) === extent
      return gone || (bodies.length > 0 && bodies.every((b) => b.length === 0)) ? [] : undefined
    },
  })
