/** Where the targets of a reduction exist. */
import type { For, Reduce } from '../ir/loops.ts'
import { walkStmts } from '../ir/tree.ts'

/**
 * How many of the loops around a reduction lie outside of where its targets exist: a local buffer is made anew in
 * every iteration of those, so what they reduce is not reduced into it. None for global buffers.
 */
export function outsideLifetime(reduce: Reduce, path: readonly For[]): number {
  const home = path.findLastIndex((l) => {
    let holds = false
    walkStmts(l.body, (s) => {
      if (s.kind === 'alloc' && reduce.targets.some((t) => t.buffer === s.buffer.name)) holds = true
    })
    return holds
  })
  return home + 1
}
