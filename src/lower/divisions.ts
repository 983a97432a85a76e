/**
 * Invariant reached: integer division and modulo are `quo` and `rem`, which every target has. Where the
 * dividend may be negative, flooring is spelled out; a divisor that may be 0 gives 0.
 */
import { isFloat } from '../ir/dtype.ts'
import { add, and, binary, constant, type Expr, eq, select, sub } from '../ir/expr.ts'
import type { Buffer } from '../ir/loops.ts'
import type { Param } from '../ir/stage1.ts'
import { type Body, rewriteStmts } from '../ir/tree.ts'
import { naturals } from './natural.ts'

export function lowerDivisions(body: Body, params: readonly Param[], buffers: readonly Buffer[]): Body {
  const nonNegative = naturals(body, params, buffers)
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
