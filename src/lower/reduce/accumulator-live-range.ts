/** Live ranges of accumulators: the loops inside which the targets of a reduction are allocated. */
import type { For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { someStmt } from '../../ir/statements/tree.ts'

/**
 * The number of loops around a reduction that lie outside the live range of its targets. A local buffer is allocated anew in every
 * iteration of these loops, so they do not reduce into it. 0 for global buffers.
 */
export function outsideLifetime(reduce: Reduce, path: readonly For[]): number {
  const makes = (s: Stmt): boolean =>
    s.kind === 'alloc' && reduce.targets.some((t) => t.buffer === s.buffer.name)
  return path.findLastIndex((l) => someStmt(l.body, makes)) + 1
}
