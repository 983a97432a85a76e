/**
 * Roles of loops, by what a nest writes: the rows of its result, what lies side by side in memory, what is reduced. A
 * schedule that names roles fits whatever loops a format makes (the roles of SparseTIR's and Halide's schedules by hand).
 */

import { accessesOf, type BufferAccess } from '../ir/accesses.ts'
import { loopsOf } from '../ir/definitions.ts'
import { mentions } from '../ir/expr-tree.ts'
import type { For } from '../ir/loops.ts'

/**
 * `contiguous`: iterations write neighbours along the last dimension of a result that has others; `rows`: they write other
 * elements, and no neighbours; `scatter`: they combine into elements that change on the way, in order (what balanced shares
 * run over) or in none; `reduction`: they combine into one element.
 */
export type LoopRole = 'rows' | 'contiguous' | 'scatter' | 'reduction'

/** The role of each loop of a nest, by its variable. */
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
