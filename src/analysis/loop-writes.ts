/** What iterations of a loop write, and whether they are known to write apart (loop-carried output dependences). */

import { accessesOf, type BufferAccess, offsetsIn, writesOf } from '../ir/accesses.ts'
import { allocatedIn } from '../ir/bindings.ts'
import { loopsOf } from '../ir/definitions.ts'
import type { Expr } from '../ir/expr.ts'
import { readsAny } from '../ir/expr-tree.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { blockOf, type Space } from './subscript-injectivity.ts'

export function spaceIn(kernel: Kernel2, loop: For): Space {
  const inner = new Map(loopsOf(loop.body).map((l) => [l.var, l]))
  return { inner, indptr: offsetsIn(kernel.buffers), distinct: kernel.distinct }
}

/** What one iteration of a loop shares with the others through memory, buffer by buffer. */
export interface Shared {
  readonly buffer: string
  readonly accesses: readonly BufferAccess[]
  /** Iterations touch different elements, provably, without the contract. */
  readonly disjoint: boolean
  /** Some index reads memory that the loop writes, so its value is not known to stay. */
  readonly moving: boolean
}

/** The buffers that a loop's body writes and that outlive an iteration, with all accesses to them inside. */
export function writtenIn(kernel: Kernel2, loop: For, space = spaceIn(kernel, loop)): readonly Shared[] {
  const local = allocatedIn(loop.body)
  const written = new Set([...writesOf([loop])].filter((b) => !local.has(b)))
  const all = accessesOf([loop], written)
  return [...written].map((buffer) => {
    const accesses = all.filter((a) => a.buffer === buffer)
    const moving = accesses.some((a) => a.index.some((e) => readsAny(e, written)))
    return { buffer, accesses, moving, disjoint: !moving && sameBlock(accesses, loop.var, space) }
  })
}

/** Some dimension keeps every access within one block per iteration, or within one of the places of a table whose elements differ. */
function sameBlock(accesses: readonly BufferAccess[], v: string, space: Space): boolean {
  const first = accesses[0]
  if (!first || accesses.some((a) => a.whole)) return false
  const block = (e: Expr): string | undefined => blockOf(e, v, space)
  return first.index.some((e, d) => {
    const own = block(e)
    return own !== undefined && accesses.every((a) => a === first || block(a.index[d]!) === own)
  })
}

/** Iterations are run one by one, in turn or by several threads: not ahead, not as an instruction, not summed up by rows. */
export const isPlain = ({ mode }: For): boolean =>
  ['serial', 'bind', 'unroll', 'vectorize'].includes(mode.kind)

/**
 * Iterations share no element, whatever is declared of the loop: rows that differ all the same, those of a permutation, of a
 * list without repeats. What a reduction starts itself it starts once, and where that is was found for its loops.
 */
export function isIndependent(kernel: Kernel2, loop: For): boolean {
  if (!isPlain(loop)) return false
  const once = loop.extent.kind === 'const' && loop.extent.value <= 1
  return writtenIn(kernel, loop).every(
    (w) => (once || w.disjoint) && w.accesses.every((a) => a.stmt.kind !== 'reduce' || !a.stmt.init),
  )
}
