/**
 * Specialisation of loops: the rewriter of the passes in this folder that replace single loops. A finder of a pass reads one loop and
 * returns the statements that replace it; the rewriter visits outer loops first.
 */

import { naturals } from '../../analysis/integers/ranges.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { mentions } from '../../ir/expressions/expr-tree.ts'
import { reuseIfSame } from '../../ir/lists.ts'
import { memoize } from '../../ir/memoize.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocations, loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { type Body, mapBodies, withBody } from '../../ir/statements/tree.ts'
import { sharesWork } from '../memory/cooperative-copies.ts'

/**
 * Returns the statements that replace a loop inside of the loops `path`; undefined if it stays. If the first is a loop, the loops inside of
 * it are visited, too.
 */
export type LoopFinder = (
  loop: For,
  path: readonly For[],
  cx: { readonly kernel: Kernel2; readonly names: Names },
) => Body | undefined

export function specialiseLoops(kernel: Kernel2, find: LoopFinder): Kernel2 {
  const cx = { kernel, names: namesOf(kernel) }
  const visit = (list: Body, path: readonly For[]): Body => {
    const out = list.flatMap((s): Body => {
      const replaced = (s.kind === 'for' ? find(s, path, cx) : undefined) ?? [s]
      const [first, ...rest] = replaced
      if (!first || (s.kind === 'for' && first.kind !== 'for')) return replaced
      const inside = first.kind === 'for' ? [...path, first] : path
      return [mapBodies(first, (b) => visit(b, inside)), ...rest]
    })
    return reuseIfSame(list, out)
  }
  return withBody(kernel, visit(kernel.body, []))
}

/** Returns a predicate for expressions over the kernel's loops and index arrays that cannot be negative. */
export const naturalsIn = memoize((k: Kernel2) => naturals(k.body, k.params, k.buffers))

/** Returns true if the loop contains bound loops, shared memory or cooperative loops. */
export const isShared = (loop: For): boolean =>
  sharesWork([loop]) || loopsOf([loop]).some((l) => l.mode.kind === 'bind')

/** Returns true if the loop indexes an allocated array. Register arrays require that such loops are unrolled. */
export function indexesArrays(loop: For, kernel: Kernel2): boolean {
  const arrays = allocations(kernel.body)
  return accessesOf(loop.body).some((a) => arrays.has(a.buffer) && a.index.some((e) => mentions(e, loop.var)))
}
