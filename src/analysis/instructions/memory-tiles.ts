/** Addresses in declared memories: the last dimensions of a buffer are tiles, each stored as the memory declares. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { add, div, type Expr, int, mod } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { coordinateName, type Memory } from '../../ir/instructions/instr.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { keepTerms, linear, mapNumbers, minus, sumExpr } from '../integers/linear.ts'

/**
 * Returns `quotient` and `rest` of `e = t * quotient + rest`. Evident multiples of `t` in the sum become part of the
 * quotient; the other terms are divided.
 */
export function splitBy(e: Expr, t: number): { readonly quotient: Expr; readonly rest: Expr } {
  const sum = linear(e)
  const constant = sum.constant - t * Math.floor(sum.constant / t)
  const over = keepTerms({ ...sum, constant }, ({ coefficient }) => coefficient % t !== 0)
  const quotient = sumExpr(mapNumbers(minus(sum, over), (n) => n / t))
  const rest = sumExpr(over)
  if (over.terms.size === 0) return { quotient, rest }
  return { quotient: add(quotient, div(rest, int(t))), rest: mod(rest, int(t)) }
}

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
export function tiledIndex(index: readonly Expr[], m: Memory): readonly Expr[] {
  const at = index.length - m.shape.length
  const parts = m.shape.map((t, d) => splitBy(index[at + d]!, t))
  const map = new Map(parts.map((p, d) => [coordinateName(d), p.rest]))
  invariant(m.address, `${m.name} has no addresses`)
  return [...index.slice(0, at), ...parts.map((p) => p.quotient), substitute(m.address, map)]
}

/**
 * Returns whether pairs of the elements that a thread holds share a 32-bit register: an even number of 2-byte elements.
 */
export const isPacked = (b: Buffer): boolean =>
  b.memory?.scope === 'register' && !b.memory.opaque && DTYPE_BYTES[b.dtype] === 2 && b.memory.size % 2 === 0
