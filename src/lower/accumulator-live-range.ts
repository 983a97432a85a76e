/** Live ranges of accumulators: where the targets of a reduction exist. */
import type { For, Reduce, Stmt } from '../ir/loops.ts'
import { someStmt } from '../ir/tree.ts'

/**
 * How many of the loops around a reduction lie outside of where its targets exist: a local buffer is made anew in
 * every iteration of those, so what they reduce is not reduced into it. None for global buffers.
 */
export function outsideLifetime(reduce: Reduce, path: readonly For[]): number {
  const makes = (s: Stmt): boolean =>
    s.kind === 'alloc' && reduce.targets.some((t) => t.buffer === s.buffer.name)
  return path.findLastIndex((l) => someStmt(l.body, makes)) + 1
}
