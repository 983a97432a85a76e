/**
 * Integer division and modulo: floored to truncated, with strength reduction. Invariant reached: they are `quo` and `rem`, which every
 * target provides. Flooring is expanded if the dividend may be negative. Division by 0 yields 0.
 */

import { REMAINDERS, TRUNCATIONS } from '../../analysis/integers/division-rules.ts'
import { Facts } from '../../analysis/integers/facts.ts'
import { type HardwareExtents, registersOf } from '../../analysis/integers/ranges.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { binary, constant, type Expr, eq, rewriter, select } from '../../ir/expressions/expr.ts'
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
      const divisorOf = (x: Expr) =>
        hasWrappingTerms(x) || registers(x).ofData ? undefined : facts.divisor(x)
      const rest = splitRemainder(e, divisorOf) ?? e
      const truncated = (x: Expr): Expr => truncate(x, (y) => registers(y).range) ?? x
      if (rest.kind === 'binary' && rest.op === 'add') return binary('add', truncated(rest.a), rest.b)
      const value = truncated(rest)
      return safe ? value : select(eq(e.b, constant(0, e.b.dtype)), constant(0, e.dtype), value)
    },
  })
}

const splitRemainder = rewriter(REMAINDERS)
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
