/**
 * Roles of loops in the writes of a loop nest: the rows of its result, contiguous elements, and reductions. A schedule
 * that names roles fits the loops of any format (the roles in hand-written schedules of SparseTIR and Halide).
 */

import { mentions } from '../../ir/expressions/expr-tree.ts'
import { accessesOf, type BufferAccess } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For } from '../../ir/statements/loops.ts'

/**
 * `contiguous`: iterations write neighbours along the last dimension of a result with several dimensions. `rows`: they
 * write different elements that are not neighbours. `scatter`: they combine into changing elements, in order (as in
 * balanced chunks) or not. `reduction`: they combine into one element.
 */
export type LoopRole = 'rows' | 'contiguous' | 'scatter' | 'reduction'

/** Returns the role of each loop of a loop nest, by its variable. */
export function rolesIn(top: For): ReadonlyMap<string, LoopRole> {
  const targets = accessesOf([top]).filter((a) => a.mode === 'write')
  return new Map(loopsOf([top]).map((l) => [l.var, roleOf(l, targets)]))
}

function roleOf(l: For, targets: readonly BufferAccess[]): LoopRole {
  const moved = targets.filter((t) => t.index.some((e) => mentions(e, l.var)))
  if (l.reduce) return moved.length > 0 ? 'scatter' : 'reduction'
  const alongLast = ({ index }: BufferAccess): boolean =>
    index.length > 1 && index.every((e, k) => mentions(e, l.var) === (k === index.length - 1))
  return moved.length > 0 && moved.every(alongLast) ? 'contiguous' : 'rows'
}
