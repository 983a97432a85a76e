/** Tiles that threads of a warp hold together in registers: whoever touches one has a part of its elements alone. */
import { freeVars } from '../../ir/expr-tree.ts'
import type { Buffer, For, Reduce, Store } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import { walkStmts } from '../../ir/tree.ts'
import type { Lane } from './coalescing.ts'
import type { Place } from './place.ts'
import { readsIn } from './statement-facts.ts'

/** Threads for each iteration of the loops over threads: of the instructions and tiles of a launch. */
export const threadsTogether = remembered((top: For): number => {
  let most = 1
  walkStmts([top], (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') most = Math.max(most, s.mode.instr.threads)
    else if (s.kind === 'alloc') most = Math.max(most, s.buffer.memory?.threads ?? 1)
  })
  return most
})

/** Dimensions of a tile that threads hold together; 0: each has its own. */
const heldDimensions = (b: Buffer | undefined): number =>
  b?.scope === 'register' && b.memory && b.memory.threads > 1 ? b.memory.shape.length : 0

/**
 * The loops over the elements of a tile that a statement copies, as lanes of the threads that hold it, or of an instruction;
 * `null` where every thread executes all of it.
 */
export function lanesOfTile(
  s: Store | Reduce,
  p: Place,
  buffer: (name: string) => Buffer | undefined,
): readonly Lane[] | null {
  const accesses = [...(s.kind === 'store' ? [s] : s.targets), ...readsIn(s).filter((x) => x.kind === 'load')]
  const vars = new Set<string>()
  for (const { buffer: name, index } of accesses) {
    const held = heldDimensions(buffer(name))
    if (held > 0) for (const e of index.slice(-held)) for (const v of freeVars(e)) vars.add(v)
  }
  const byInstruction = p.frames.some((f) => f.loop?.mode.kind === 'instr' && f.loop.mode.instr.threads > 1)
  if (vars.size === 0) return byInstruction ? [] : null
  return p.frames.flatMap(({ loop, extent }): Lane[] =>
    loop && loop.mode.kind !== 'bind' && vars.has(loop.var)
      ? [{ axis: 'thread.x', variable: loop.var, extent }]
      : [],
  )
}
