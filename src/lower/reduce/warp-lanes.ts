/** Lanes of a warp (subgroup) for shuffles: threads that are adjacent in thread.x, at most as many as the target allows. */
import type { For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { type Body, someStmt, walkStmts } from '../../ir/statements/tree.ts'

export const onX = (l: For): boolean => l.mode.kind === 'bind' && l.mode.to === 'thread.x'

/** The number of threads in thread.x, in the top-level nest that contains the reduction. */
function threadsInX(body: Body, reduce: Reduce): number {
  const holds = (top: Stmt): boolean => someStmt([top], (s) => s === reduce)
  let out = 1
  walkStmts(body.filter(holds), (s) => {
    if (s.kind === 'for' && onX(s) && s.extent.kind === 'const') out = Math.max(out, s.extent.value)
  })
  return out
}

/**
 * The largest number of lanes (at most `lanes`) in which the threads of `loop` can combine by exchange. It is a power of two that divides
 * the loop and the row of the block, so that no group spans two rows. 1 if no exchange is possible.
 */
export function laneWidth(body: Body, reduce: Reduce, loop: For, lanes: number): number {
  if (!onX(loop) || loop.extent.kind !== 'const') return 1
  const row = threadsInX(body, reduce)
  let width = 1
  while (width * 2 <= lanes && loop.extent.value % (width * 2) === 0 && row % (width * 2) === 0) width *= 2
  return width
}
