/**
 * Buffer flattening (row-major linearisation). Invariant reached: every buffer has one dimension, and every access one row-major index.
 */

import { splitBy } from '../../analysis/integers/mixed-radix.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { add, cast, ceildiv, div, type Expr, int, load, mul } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { coordinateName, type Memory } from '../../ir/instructions/instr.ts'
import { memoize } from '../../ir/memoize.ts'
import { redirectAccesses } from '../../ir/statements/bindings.ts'
import { buffersByName } from '../../ir/statements/definitions.ts'
import type { Buffer, Kernel2 } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts } from '../../ir/statements/tree.ts'
import { fieldAt } from '../../ir/values/packed-fields.ts'

/** Row-major address of `index` in a buffer of this shape. */
export function address(shape: readonly Expr[], index: readonly Expr[]): Expr {
  invariant(shape.length === index.length, 'an index for each dimension')
  return index.reduce<Expr>((sum, e, k) => (k === 0 ? e : add(mul(sum, shape[k]!), e)), int(0))
}

/**
 * Casts index expressions to u32 and back if a variable cancels in their sum, such as `i` in `X[i, -i]`. The sum alone would no longer
 * mention `i`, so the conditions and loops that keep the access in range would not apply to it.
 */
const opaqueIndices = (index: readonly Expr[], lost: readonly string[]): readonly Expr[] =>
  index.map((e, k) => (k > 0 && lost.some((v) => mentions(e, v)) ? cast(cast(e, 'u32'), 'index') : e))

const flatBuffer = (b: Buffer): Buffer => Object.freeze({ ...b, shape: [storedShape(b).reduce(mul, int(1))] })

/** Returns flattened copies of the buffers; cached, because each launch of a kernel needs them. */
export const flatBuffers = memoize((buffers: readonly Buffer[]): readonly Buffer[] => buffers.map(flatBuffer))

/** The shape whose row-major order is the storage order: a buffer in a declared shared memory is stored tile by tile. */
const storedShape = (b: Buffer): readonly Expr[] =>
  b.memory?.scope === 'shared' ? tiledShape(b, b.memory) : b.shape

/** Kinds of accesses without an index. */
const NO_ELEMENT: ReadonlySet<string> = new Set(['whole', 'name', 'map'])

export function flattenBuffers(body: Body, buffers: readonly Buffer[]): Body {
  const all = buffersByName(buffers, body)
  const flatIndex = (buffer: string, index: readonly Expr[]): Expr => {
    const b = all.get(buffer)
    invariant(b, `no buffer ${buffer}`)
    const at = b.memory?.scope === 'shared' ? tiledIndex(index, b.memory) : index
    const sum = address(storedShape(b), at)
    const lost = [...new Set(index.flatMap((e) => [...freeVars(e)]))].filter((v) => !mentions(sum, v))
    return lost.length === 0 ? sum : address(storedShape(b), opaqueIndices(at, lost))
  }
  // A one-dimensional access is flat already, unless its memory is tiled.
  const isFlat = (x: { readonly buffer: string; readonly index: readonly Expr[] }): boolean =>
    x.index.length === 1 && all.get(x.buffer)?.memory?.scope !== 'shared'
  return redirectAccesses(
    body,
    (at) => {
      if (NO_ELEMENT.has(at.kind!) || (isFlat(at) && at.kind !== 'word')) return undefined
      const index = flatIndex(at.buffer, at.index)
      return { buffer: at.buffer, index: [at.kind === 'word' ? div(index, int(2)) : index] }
    },
    (b) => [flatBuffer(b)],
  )
}

// Tiles of declared memories: the last dimensions of a buffer are tiles, each stored as the memory declares.

/** Returns the extents of a buffer's tiled dimensions, and the dimensions before (`lead`). */
function tileDims(
  b: Buffer,
  m: Memory,
): { readonly lead: readonly Expr[]; readonly extents: readonly number[] } {
  const at = b.shape.length - m.shape.length
  invariant(at >= 0, `${b.name} has no tiles of ${m.name}`)
  const extents = b.shape.slice(at).map((e) => (e.kind === 'const' ? e.value : 0))
  invariant(
    extents.every((n, d) => n > 0 && n % m.shape[d]! === 0),
    `${b.name} is made of no tiles of ${m.name}`,
  )
  return { lead: b.shape.slice(0, at), extents }
}

/** Returns the shape in which tiles are stored: the dimensions before, the numbers of tiles, and the size of a tile. */
export function tiledShape(b: Buffer, m: Memory): readonly Expr[] {
  const { lead, extents } = tileDims(b, m)
  return [...lead, ...extents.map((n, d) => int(n / m.shape[d]!)), int(m.size)]
}

/** Returns the index in `tiledShape` of an element of a shared memory with addresses. */
function tiledIndex(index: readonly Expr[], m: Memory): readonly Expr[] {
  const at = index.length - m.shape.length
  const parts = m.shape.map((t, d) => splitBy(index[at + d]!, t))
  const map = new Map(parts.map((p, d) => [coordinateName(d), p.rest]))
  invariant(m.address, `${m.name} has no addresses`)
  return [...index.slice(0, at), ...parts.map((p) => p.quotient), substitute(m.address, map)]
}

// Packed index arrays become arrays of words: a load is a bit field of a word, and a search records the width of its elements in bits.

/** Expansion of packed loads. Invariant reached: no buffer is packed. */
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
