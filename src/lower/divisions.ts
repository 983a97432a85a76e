/**
 * Invariant reached: integer division and modulo are `quo` and `rem`, which every target has. Where the
 * dividend may be negative, flooring is spelled out; a divisor that may be 0 gives 0.
 */
import { isFloat } from '../ir/dtype.ts'
import { add, and, binary, constant, type Expr, eq, select, sub } from '../ir/expr.ts'
import type { Buffer } from '../ir/loops.ts'
import type { Param } from '../ir/stage1.ts'
import { type Body, boundVarsOf, rewriteStmts, walkStmts } from '../ir/tree.ts'

export function lowerDivisions(body: Body, params: readonly Param[], buffers: readonly Buffer[]): Body {
  const natural = new Set([...params.filter((p) => p.kind === 'size').map((p) => p.name)])
  for (const v of boundVarsOf(body)) natural.add(v)
  walkStmts(body, (s) => {
    // A `let` is as natural as its value; loops start at 0.
    if (s.kind === 'let') natural.delete(s.name)
  })
  const index = new Set(buffers.filter((b) => b.role === 'index').map((b) => b.name))
  const nonNegative = (e: Expr): boolean => {
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
      case 'binary':
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
  }
  const isLength = (a: Expr, b: Expr): boolean =>
    a.kind === 'load' && b.kind === 'load' && a.buffer === b.buffer && index.has(a.buffer)
  return rewriteStmts(body, {
    expr: (e) => {
      if (e.kind !== 'binary' || (e.op !== 'div' && e.op !== 'mod') || isFloat(e.dtype)) return undefined
      const safe = e.b.kind === 'const' && e.b.value !== 0
      const positive = nonNegative(e.a) && nonNegative(e.b)
      const value = positive ? binary(e.op === 'div' ? 'quo' : 'rem', e.a, e.b) : floored(e.op, e.a, e.b)
      return safe ? value : select(eq(e.b, constant(0, e.b.dtype)), constant(0, e.dtype), value)
    },
  })
}

function floored(op: 'div' | 'mod', a: Expr, b: Expr): Expr {
  const zero = constant(0, b.dtype)
  const rem = binary('rem', a, b)
  const off = and(binary('ne', rem, zero), binary('ne', binary('lt', rem, zero), binary('lt', b, zero)))
  return op === 'div'
    ? select(off, sub(binary('quo', a, b), constant(1, b.dtype)), binary('quo', a, b))
    : select(off, add(rem, b), rem)
}
