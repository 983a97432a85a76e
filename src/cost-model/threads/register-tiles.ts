/** Tiles that threads of a warp hold together in registers: each thread has a part of the elements. */
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer, For, Reduce, Store } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import type { Lane } from '../work/coalescing.ts'
import type { Place } from '../work/place.ts'
import { readsOf } from '../work/statement-facts.ts'

/**
 * Maximum number of threads that cooperate on one iteration of the loops over threads, over the instructions and
 * register tiles of a launch.
 */
export const cooperatingThreads = memoize((top: For): number => {
  let threads = 1
  walkStmts([top], (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') threads = Math.max(threads, s.mode.instr.threads)
    else if (s.kind === 'alloc') threads = Math.max(threads, s.buffer.memory?.threads ?? 1)
  })
  return threads
})

/** Number of dimensions of a tile that threads hold together; 0 if each thread has its own. */
const tileDimensions = (b: Buffer | undefined): number =>
  b?.scope === 'register' && b.memory && b.memory.threads > 1 ? b.memory.shape.length : 0

/**
 * The loops over the elements of a tile that a statement copies, as lanes of the threads that hold the tile or execute
 * an instruction; `null` if every thread executes all of them.
 */
export function tileLanes(
  s: Store | Reduce,
  p: Place,
  buffer: (name: string) => Buffer | undefined,
): readonly Lane[] | null {
  const accesses = [...(s.kind === 'store' ? [s] : s.targets), ...readsOf(s).filter((x) => x.kind === 'load')]
  const vars = new Set<string>()
  for (const { buffer: name, index } of accesses) {
    const dimensions = tileDimensions(buffer(name))
    if (dimensions > 0) for (const e of index.slice(-dimensions)) for (const v of freeVars(e)) vars.add(v)
  }
  const isInstruction = p.frames.some((f) => f.loop?.mode.kind === 'instr' && f.loop.mode.instr.threads > 1)
  if (vars.size === 0) return isInstruction ? [] : null
  return p.frames.flatMap(({ loop, extent }): Lane[] =>
    loop && loop.mode.kind !== 'bind' && vars.has(loop.var)
      ? [{ axis: 'thread.x', variable: loop.var, extent }]
      : [],
  )
}
