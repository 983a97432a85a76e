/** Contiguity and alignment of accesses: runs of neighbouring elements along a loop. */
import { type Expr, int, lt, variable } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { Facts } from '../integers/facts.ts'
import { coefficientOf, linear } from '../integers/linear.ts'

/**
 * Returns the reason why the runs of `run` neighbours along a loop do not begin at multiples of `run` in the last
 * dimension; undefined if they do.
 */
export function notInRuns(
  index: readonly Expr[],
  along: { readonly var: string; readonly name?: string } | undefined,
  run: number,
  facts: Facts,
): string | undefined {
  const e = index.at(-1)
  if (!along || !e) return 'it is one element'
  const sum = linear(e)
  const term = sum.terms.get(keyOf(variable(along.var)))
  if (term?.coefficient !== 1 || index.slice(0, -1).some((x) => mentions(x, along.var)))
    return `${along.name ?? along.var} does not go along it`
  for (const t of sum.terms.values())
    if (t !== term && (t.coefficient * facts.divisor(t.term)) % run !== 0)
      return `${printExpr(e)} may begin anywhere`
  return sum.constant % run === 0 ? undefined : `${printExpr(e)} begins between`
}

/**
 * Returns the bound of a run's first element, if the bound is a multiple of the run's width: it then holds for all
 * elements of the run, or fails for all. Returns other bounds unchanged.
 */
export function boundOfRun(g: Expr, lane: string, width: number, facts: Facts): Expr {
  if (!mentions(g, lane) || g.kind !== 'binary' || g.op !== 'lt' || mentions(g.b, lane)) return g
  const first = substitute(g.a, new Map([[lane, int(0)]]))
  const whole = coefficientOf(g.a, lane) === 1 && facts.isMultiple(first, width)
  return whole && facts.isMultiple(g.b, width) ? lt(first, g.b) : g
}
