/**
 * Integer division and modulo: floored to truncated, with strength reduction. Invariant reached: they are `quo` and `rem`, which every
 * target provides. Flooring is expanded if the dividend may be negative. Division by 0 yields 0.
 * If g divides x and c, 0 <= r < g, and no operation wraps, then `(x + r) / c` is `x / c`, and `(x + r) mod c` is `x mod c + r`. So the
 * addresses of swizzled tiles stay a common base plus constants.
 */

import { TRUNCATIONS } from '../../analysis/integers/division-rules.ts'
import { gcd } from '../../analysis/integers/divisors.ts'
import { Facts } from '../../analysis/integers/facts.ts'
import { type HardwareExtents, registersOf } from '../../analysis/integers/ranges.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { add, binary, constant, type Expr, eq, rewriter, select } from '../../ir/expressions/expr.ts'
import { hasWrappingTerms } from '../../ir/expressions/wrapping-values.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts } from '../../ir/statements/tree.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { flatBuffers } from '../memory/buffer-flattening.ts'
import { insertLets, WRITTEN_OUT } from './let-insertion.ts'

export function lowerIntegerDivision(
  body: Body,
  { params, buffers, facts: sizes }: Pick<Kernel2, 'params' | 'buffers' | 'facts'>,
  launch?: HardwareExtents,
): Body {
  const analyse = () => ({
    registers: registersOf(body, params, buffers, launch),
    facts: new Facts({ sizes }),
  })
  // Computed lazily, because many bodies contain no division.
  let analysis: ReturnType<typeof analyse> | undefined
  return rewriteStmts(body, {
    expr: (e) => {
      if (e.kind !== 'binary' || (e.op !== 'div' && e.op !== 'mod') || isFloat(e.dtype)) return undefined
      analysis ??= analyse()
      const { registers, facts } = analysis
      const safe = e.b.kind === 'const' && e.b.value !== 0
      const [from, rest] =
        e.b.kind === 'const' && !hasWrappingTerms(e.a) && !registers(e.a).ofData
          ? splitRemainder(e.a, e.b.value, facts)
          : [e.a, 0]
      const division = binary(e.op, from, e.b)
      const value = truncate(division, (x) => registers(x).range) ?? division
      if (e.op === 'mod' && rest > 0) return add(value, constant(rest, e.dtype))
      return safe ? value : select(eq(e.b, constant(0, e.b.dtype)), constant(0, e.dtype), value)
    },
  })
}

/** Splits `e` into `x + r`, with `0 <= r < g` for a common divisor g of `x` and `c`. */
function splitRemainder(e: Expr, c: number, facts: Facts): [x: Expr, r: number] {
  if (e.kind !== 'binary' || e.op !== 'add' || e.b.kind !== 'const' || c <= 0) return [e, 0]
  const g = gcd(facts.divisor(e.a), c)
  const r = e.b.value - g * Math.floor(e.b.value / g)
  return [add(e.a, constant(e.b.value - r, e.b.dtype)), r]
}

const truncate = rewriter(TRUNCATIONS)

/**
 * Let insertion for quotients. Invariant established: the expansion of floored division, which repeats the dividend up to three times, has
 * no repeated operands. It runs after every pass that analyses index expressions, because names hide their structure.
 */
export function insertQuotientLets(
  body: Body,
  kernel: Kernel2,
  names: Names,
  extents: HardwareExtents,
): Body {
  const shared = insertLets(body, flatBuffers(kernel.buffers), names, WRITTEN_OUT)
  // The bounds checks that let insertion adds mention array lengths, which may contain quotients of sizes.
  return lowerIntegerDivision(shared, kernel, extents)
}
