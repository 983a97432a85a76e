/**
 * Lanes of a warp (subgroup) for shuffles. Which threads can exchange registers: neighbours in thread.x, as many as a target
 * says.
 */
import type { For, Reduce, Stmt } from '../ir/loops.ts'
import { type Body, someStmt, walkStmts } from '../ir/tree.ts'

export const onX = (l: For): boolean => l.mode.kind === 'bind' && l.mode.to === 'thread.x'

/** Threads of a block in thread.x, in the nest that holds the reduction. */
function threadsInX(body: Body, reduce: Reduce): number {
  const holds = (top: Stmt): boolean => someStmt([top], (s) => s === reduce)
  let out = 1
  walkStmts(body.filter(holds), (s) => {
    if (s.kind === 'for' && onX(s) && s.extent.kind === 'const') out = Math.max(out, s.extent.value)
  })
  return out
}

/**
 * In groups of how many, at most `lanes`, the threads of `loop` can combine by exchange: a power of two that divides
 * the loop, so that groups are whole, and the block's row, so that none lies in two rows. 1 where they cannot.
 */
export function laneWidth(body: Body, reduce: Reduce, loop: For, lanes: number): number {
  if (!onX(loop) || loop.extent.kind !== 'const') return 1
  const row = threadsInX(body, reduce)
  let width = 1
  while (width * 2 <= lanes && loop.extent.value % (width * 2) === 0 && row % (width * 2) === 0) width *= 2
  return width
}
