/**
 * Which integer expressions cannot be negative: sizes, positions, index arrays, and what is made of them, unless it
 * wraps.
 */
import { boundVarsOf } from '../../ir/bindings.ts'
import type { Expr } from '../../ir/expr.ts'
import { perExpr } from '../../ir/expr-tree.ts'
import type { Buffer } from '../../ir/loops.ts'
import type { Param } from '../../ir/stage1.ts'
import { type Body, walkStmts } from '../../ir/tree.ts'
import { valuesIn } from '../../ir/wrapping-values.ts'

export function naturals(
  body: Body,
  params: readonly Param[],
  buffers: readonly Buffer[],
): (e: Expr) => boolean {
  const natural = new Set([...params.filter((p) => p.kind === 'size').map((p) => p.name)])
  for (const v of boundVarsOf(body)) natural.add(v)
  walkStmts(body, (s) => {
    // A `let` is as natural as its value; loops start at 0.
    if (s.kind === 'let') natural.delete(s.name)
  })
  const values = valuesIn(body).spans
  const index = new Set(buffers.filter((b) => b.role === 'index').map((b) => b.name))
  const isLength = (a: Expr, b: Expr): boolean =>
    a.kind === 'load' && b.kind === 'load' && a.buffer === b.buffer && index.has(a.buffer)
  return perExpr<boolean>((e, nonNegative) => {
    if (e.dtype === 'u32' || e.dtype === 'u8' || e.dtype === 'bool') return true
    switch (e.kind) {
      case 'const':
        return e.value >= 0
      case 'builtin':
        return true
      case 'var':
        return natural.has(e.name)
      case 'load':
        return index.has(e.buffer)
      case 'search':
        return nonNegative(e.lo)
      case 'select':
        return nonNegative(e.then) && nonNegative(e.else)
      case 'call':
        return e.fn === 'popcount' || (e.fn === 'bit_xor' && e.args.every(nonNegative))
      case 'binary':
        if ((e.op === 'add' || e.op === 'mul') && e.span && values.has(e.span)) return false
        if (e.op === 'max') return nonNegative(e.a) || nonNegative(e.b)
        if (e.op === 'mod') return nonNegative(e.b)
        // indptr[p + 1] - indptr[p] and n - 1 under a ceildiv: lengths.
        if (e.op === 'sub') return isLength(e.a, e.b)
        return (
          ['add', 'mul', 'min', 'div', 'quo', 'rem'].includes(e.op) && nonNegative(e.a) && nonNegative(e.b)
        )
      default:
        return false
    }
  })
}
