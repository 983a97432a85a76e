/**
 * Expansion of packed index arrays into words. Invariant reached: no buffer is packed. A load becomes a bit field of a word, and a search
 * records the width of its elements in bits.
 */
import { ceildiv, type Expr, int, load, mul } from '../../ir/expressions/expr.ts'
import type { Buffer, Kernel2 } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts } from '../../ir/statements/tree.ts'
import { fieldAt } from '../../ir/values/packed-fields.ts'
import { address } from './buffer-flattening.ts'

export function expandPackedLoads(body: Body, buffers: readonly Buffer[]): Body {
  const packed = new Map(buffers.flatMap((b) => (b.packed ? [[b.name, b] as const] : [])))
  if (packed.size === 0) return body
  const read = (e: Expr): Expr | undefined => {
    const b = e.kind === 'load' || e.kind === 'search' ? packed.get(e.buffer) : undefined
    if (!b?.packed) return undefined
    if (e.kind === 'search') return Object.freeze({ ...e, bits: b.packed })
    return e.kind === 'load'
      ? fieldAt(address(b.shape, e.index), b.packed, (at) => load(e.buffer, [at], e.dtype, e.span))
      : undefined
  }
  return rewriteStmts(body, { expr: read })
}

/** Returns the kernel with packed buffers declared as arrays of words. */
export function packedBuffersAsWords(kernel: Kernel2): Kernel2 {
  const packed = new Set(kernel.buffers.flatMap((b) => (b.packed ? [b.name] : [])))
  if (packed.size === 0) return kernel
  return {
    ...kernel,
    buffers: kernel.buffers.map((b) => (b.packed ? wordsOf(b, b.packed) : b)),
    ascending: kernel.ascending?.filter((name) => !packed.has(name)),
  }
}

/** Drops the bounds and the order of the elements, which do not hold for words. */
const wordsOf = ({ packed: _, below: _below, ascending: _ascending, ...b }: Buffer, bits: number): Buffer =>
  Object.freeze({ ...b, shape: [ceildiv(b.shape.reduce(mul, int(1)), int(32 / bits))] })
