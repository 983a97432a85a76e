/**
 * Packed index arrays as words. Invariant reached: no buffer is packed; what was an element of one is a field of a word, and a
 * search of one says how wide its elements are. Until here they are arrays of coordinates like others.
 */
import { ceildiv, type Expr, int, load } from '../ir/expr.ts'
import type { Buffer, Kernel2 } from '../ir/loops.ts'
import { fieldAt } from '../ir/packed-fields.ts'
import { rewriteStmts } from '../ir/tree.ts'

export function readFields(kernel: Kernel2): Kernel2 {
  const bitsOf = new Map(kernel.buffers.flatMap((b) => (b.packed ? [[b.name, b.packed] as const] : [])))
  if (bitsOf.size === 0) return kernel
  const read = (e: Expr): Expr | undefined => {
    const bits = e.kind === 'load' || e.kind === 'search' ? bitsOf.get(e.buffer) : undefined
    if (bits === undefined) return undefined
    if (e.kind === 'search') return Object.freeze({ ...e, bits })
    return e.kind === 'load'
      ? fieldAt(e.index[0]!, bits, (at) => load(e.buffer, [at], e.dtype, e.span))
      : undefined
  }
  return {
    ...kernel,
    buffers: kernel.buffers.map((b) => (b.packed ? wordsOf(b, b.packed) : b)),
    body: rewriteStmts(kernel.body, { expr: read }),
    ascending: kernel.ascending?.filter((name) => !bitsOf.has(name)),
  }
}

/** Of words nothing is known. */
const wordsOf = ({ packed: _, below: _below, ...b }: Buffer, bits: number): Buffer =>
  Object.freeze({ ...b, shape: [ceildiv(b.shape[0]!, int(32 / bits))] })
