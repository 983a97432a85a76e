/** Runs of neighbours along a loop (contiguity and alignment of an access). */
import { type Expr, variable } from '../ir/expr.ts'
import { mentions } from '../ir/expr-tree.ts'
import { printExpr } from '../ir/print-stage2.ts'
import { keyOf } from '../ir/structural-equality.ts'
import type { Facts } from './integers/facts.ts'
import { linear } from './integers/linear.ts'

/** Why the runs of `run` neighbours that a loop goes along do not begin at multiples of that in the last dimension; `undefined`: they do. */
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
