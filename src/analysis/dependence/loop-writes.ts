/** Writes of a loop's iterations, and whether these are provably disjoint (loop-carried output dependences). */

import type { Expr } from '../../ir/expressions/expr.ts'
import { readsSome } from '../../ir/expressions/expr-tree.ts'
import { accessesOf, type BufferAccess, offsetsIn, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { blockOf, type Space } from './subscript-injectivity.ts'

export function spaceIn(kernel: Kernel2, loop: For): Space {
  const inner = new Map(loopsOf(loop.body).map((l) => [l.var, l]))
  return { inner, indptr: offsetsIn(kernel.buffers), distinct: kernel.distinct }
}

/** The accesses to one buffer that iterations of a loop share through memory. */
export interface Shared {
  readonly buffer: string
  readonly accesses: readonly BufferAccess[]
  /** True if iterations provably access different elements, without the contract of `for.reduce`. */
  readonly disjoint: boolean
  /** True if an index reads memory that the loop writes, so that its value may change. */
  readonly moving: boolean
}

/** Returns the buffers that a loop's body writes and that outlive an iteration, with all accesses to them inside. */
export function writtenIn(kernel: Kernel2, loop: For, space = spaceIn(kernel, loop)): readonly Shared[] {
  const local = allocatedNames(loop.body)
  const written = new Set([...writesOf([loop])].filter((b) => !local.has(b)))
  const all = accessesOf([loop], written)
  return [...written].map((buffer) => {
    const accesses = all.filter((a) => a.buffer === buffer)
    const moving = accesses.some((a) => a.index.some((e) => readsSome(e, written)))
    return { buffer, accesses, moving, disjoint: !moving && sameBlock(accesses, loop.var, space) }
  })
}

/**
 * Returns whether a dimension keeps all accesses of an iteration within one block, or within one place of a table of
 * distinct elements.
 */
function sameBlock(accesses: readonly BufferAccess[], v: string, space: Space): boolean {
  const first = accesses[0]
  if (!first || accesses.some((a) => a.whole)) return false
  const block = (e: Expr): string | undefined => blockOf(e, v, space)
  return first.index.some((e, d) => {
    const own = block(e)
    return own !== undefined && accesses.every((a) => a === first || block(a.index[d]!) === own)
  })
}

/**
 * Returns whether iterations run one by one, in order or on several threads: not ahead of time, as an instruction, or
 * accumulated by rows.
 */
export const isPlain = ({ mode }: For): boolean =>
  ['serial', 'bind', 'unroll', 'vectorize'].includes(mode.kind)

/**
 * Returns whether iterations share no element, whatever the loop declares: rows that are different because of a
 * permutation, or of a list without repeats. A reduction that initialises its elements does not qualify, because the
 * place of its initialisation depends on the declared loops.
 */
export function isIndependent(kernel: Kernel2, loop: For): boolean {
  if (!isPlain(loop)) return false
  const once = loop.extent.kind === 'const' && loop.extent.value <= 1
  return writtenIn(kernel, loop).every(
    (w) => (once || w.disjoint) && w.accesses.every((a) => a.stmt.kind !== 'reduce' || !a.stmt.init),
  )
}
